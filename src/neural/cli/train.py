"""`neural train`: a program or an experiment → a run folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import PROGRAM, RUN

if TYPE_CHECKING:
    from neural.samples import Judged
    from neural.tasks.task import Task
    from neural.tracking.run import Run
    from neural.training.engine import Outcome
    from neural.training.workers import Workers


class _Train(click.Command):
    """Says how a key of the experiment is changed where somebody takes it for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As ever; `--steps` and its like are told what to write."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as wrong:
            from neural.tasks.experiment import Training

            key = {"lr": "learning_rate"}.get(name := wrong.option_name.lstrip("-").replace("-", "_"), name)
            if key in Training.model_fields:
                way_out = f"write --set training.{key}=…"
                raise click.UsageError(f"no option is called {wrong.option_name}: {way_out}", ctx) from None
            raise


@click.command(cls=_Train)
@click.argument("file", required=False, type=PROGRAM)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key of the experiment.")
@click.option("--name", metavar="TEXT", help="Goes into the run folder's name.")
@click.option("--seed", type=int, help="Short for --set training.seed=…")
@click.option("--network", metavar="NAME", help="Which network, where a program has several.")
@click.option(
    "--resume", is_flag=False, flag_value="", metavar="[RUN]", type=RUN,
    help="Go on with a run; the newest if none is named.",
)
@click.option("--samples", metavar="YAML",
              help='Write texts at every validation and judge them: "{number: 10, length: 500}".')  # fmt: skip
@click.option("--devices", type=click.IntRange(1), default=1, help="Processes that train together on this machine.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs go.")
@click.option("--dry-run", is_flag=True, help="Say what would happen and what it costs; write nothing.")
@click.option("--quiet", "form", flag_value="quiet", help="Say nothing but mistakes and the run's folder.")
@click.option("--json", "form", flag_value="json",
              help="A line of JSON now and then, and one at the end; with --dry-run, the plan.")  # fmt: skip
def command(
    file: str | None, changes: tuple[str, ...], name: str | None, seed: int | None, network: str | None,
    resume: str | None, samples: str | None, devices: int, runs: Path, dry_run: bool, form: str | None,
) -> None:  # fmt: skip
    """Train a network: a .neural program, or an experiment in YAML.

    \b
    $ neural train examples/digits.neural
    $ neural train examples/digits.neural --set training.learning_rate=3e-4 --seed 1
    $ neural train examples/language_model/tiny.yaml --samples "{number: 5}"
    $ neural train --resume

    Ctrl-C finishes the step and saves; a second time stops at once. Exit codes: 0 trained, 1 failed, 2 mistakes,
    130 stopped.
    """
    if file is None and resume is None:
        raise click.UsageError("name a program or an experiment, or --resume a run")
    if file is not None and resume:
        raise click.UsageError("a run is resumed with its own settings: leave the file out")
    if file is not None:
        from neural.cli._kinds import expect

        expect(file, "experiment", "program")
    wanted = [*changes, *([f"name={name}"] if name else []), *([f"training.seed={seed}"] if seed is not None else [])]
    if devices > 1 and "WORLD_SIZE" not in os.environ:
        from neural.training.launch import launch

        sys.exit(launch(devices))
    from neural.cli._mistakes import told

    with told():
        _train(file, wanted, network, resume, samples, runs, dry_run, form or "text")


def _train(
    file: str | None, changes: list[str], network: str | None, resume: str | None, samples: str | None, runs: Path,
    dry_run: bool, form: str,
) -> None:  # fmt: skip
    from neural.cli._text import near
    from neural.experiments import find_run, task_of, task_of_run
    from neural.tracking.run import Run
    from neural.training.workers import joined

    old = find_run(resume or None, runs) if file is None else None
    if file is not None:
        changes = [_from_here(one, Path(file).parent) for one in changes]
    task = task_of(file, changes, network=network) if file is not None else task_of_run(Run.open(old or ""), changes)
    judged = _judged(samples, old, task)
    if dry_run:
        import json

        from neural.cli._plan import plan, planned

        if os.environ.get("RANK", "0") == "0":   # of several processes, the first one
            click.echo(json.dumps(planned(task)) if form == "json" else plan(task))
        return
    with joined(task.experiment.training.device) as workers:
        run = _run(task, old, runs, judged) if workers.first else None
        if run is not None and form == "text":
            for remark in task.remarks:
                _remark(remark)
            click.echo(f"{'goes on in' if old else 'run'} {near(run.path)}", err=True)
        outcome = _fit(task, run, workers, form, judged)
    if run is not None:
        _say(run, outcome, form)
    sys.exit(0 if outcome.state == "finished" else 130)


def _from_here(change: str, folder: Path) -> str:
    """A path that was typed is seen from where it was typed, unless it is there as the file sees it."""
    key, _, said = change.partition("=")
    if key.strip() not in ("data", "network") or not set("./~") & set(said):   # `digits` is a name, not a path
        return change
    try:
        typed = Path(said.strip()).expanduser()
        elsewhere = typed.exists() and not (folder / typed).exists()
    except (OSError, RuntimeError):   # no file can be called so, or nobody has that home
        return change
    return f'{key}="{typed.absolute()}"' if elsewhere else change


def _judged(said: str | None, old: Path | None, task: Task) -> Judged | None:
    """Texts to write and judge, as asked for or as the run that goes on was begun; refused where they cannot be."""
    from neural.tracking.run import Run

    begun = Run.open(old).environment.get("samples") if old is not None else None
    if said is None and begun is None:
        return None
    from neural.core.diagnostics import Source
    from neural.core.settings import read_settings, restored
    from neural.samples import Judged, Samples

    return Judged(task, restored(Samples, begun) if said is None else read_settings(Samples, Source("--samples", said)))


def _run(task: Task, old: Path | None, runs: Path, judged: Judged | None) -> Run:
    """A new folder, the one that is resumed, or the one of the attempt before, where torchrun starts us again."""
    from neural.core.settings import resolved
    from neural.experiments import new_run
    from neural.tracking.run import Run
    from neural.training.launch import attempt_before, launched

    old = old or attempt_before(runs)
    if old is None:
        return new_run(task, runs, launch=launched(), **({"samples": resolved(judged.samples)} if judged else {}))
    return Run.reopen(old)


def _fit(task: Task, run: Run | None, workers: Workers, form: str, judged: Judged | None) -> Outcome:
    from neural.cli._progress import shown
    from neural.cli._text import near
    from neural.training.engine import fit

    also = judged.kept_in(run) if judged is not None and run is not None else None
    try:
        with shown(form, terminal=sys.stderr.isatty()) as tell:
            return fit(task, run, workers=workers, tell=tell, also=also, remark=_remark)
    except KeyboardInterrupt:
        if run is not None:
            click.echo(f"stopped at once; go on with: neural train --resume {near(run.path)}", err=True)
        raise


def _remark(text: str) -> None:
    click.echo(f"note: {text}", err=True)


def _say(run: Run, outcome: Outcome, form: str) -> None:
    import json

    from neural.cli._text import near

    if form == "json":
        click.echo(json.dumps({"run": str(run.path), "state": outcome.state, "step": outcome.step,
                               "best": outcome.scores, "message": outcome.message}))  # fmt: skip
        return
    if form == "quiet":
        click.echo(run.path)
        return
    best = "  ".join(f"{name} {value:.4f}" for name, value in outcome.scores.items())
    click.echo(f"{outcome.state} after step {outcome.step:,}" + (f"; best: {best}" if best else ""))
    if outcome.state == "stopped":
        click.echo(f"go on with: neural train --resume {near(run.path)}")
    else:
        if outcome.message:
            click.echo(outcome.message)
        click.echo(f"look at it: neural show {near(run.path)}")
