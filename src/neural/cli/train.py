"""`neural train`: train a program, an experiment or data into a run folder.

A program is a `.neural` file: a network and its training. An experiment is a YAML file: a task
(neural.tasks) and its settings; for data, such as a text, it is guessed. A run is the folder of one
training. Output has one of three forms: text, json or quiet. A snapshot is the attention captured
at one step; an attention measure is a number computed from it, such as entropy.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import PROGRAM, RUN, SEED
from neural.cli._options import json_option, runs_option

if TYPE_CHECKING:
    from neural.core.experiment_guess import ExperimentGuess
    from neural.runs.run import Run
    from neural.tasks.task import Task
    from neural.training.engine import TrainingResult
    from neural.workflows.train import PreparedTraining, TrainRequest

ALIASES = ("fit",)
"""Other names of this command."""


class _TrainCommand(click.Command):
    """Suggests `--set` if a key of the experiment is used as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; the error for `--steps 3`, or `--step 3`, is to write `--set training.steps=3`."""
        words = list(args)  # parsing removes words from `args`
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from neural.core.experiment import TrainingSettings
            from neural.core.names import find_closest

            name = error.option_name.lstrip("-").replace("-", "_")
            options = [option.name for option in self.params if option.name]
            names = [*options, *TrainingSettings.model_fields]
            key = "learning_rate" if name == "lr" else find_closest(name, names)
            if key in options or key not in TrainingSettings.model_fields:
                raise
            value = _find_value(error.option_name, words)
            message = f"there is no option {error.option_name}: use --set training.{key}={value}"
            raise click.UsageError(message, ctx) from None


def _find_value(option: str, words: list[str]) -> str:
    """The value that follows an option on the command line; `…` if there is none."""
    for word, next_word in zip(words, [*words[1:], "-"], strict=True):
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=") or "…"
        if word == option and not next_word.startswith("-"):
            return next_word
    return "…"


@click.command(cls=_TrainCommand)
@click.argument("file", metavar="[FILE|DATA]", required=False, type=PROGRAM)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the experiment: training.steps=500.",
)
@click.option("--name", metavar="TEXT", help="Name of the run, used in the name of its folder.")
@click.option("--seed", type=SEED, help="Short for --set training.seed=…")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    metavar="N",
    help="Train an ensemble of N models with different seeds; their mean predicts. Short for "
    "--set training.seeds=N; for segmentation.",
)
@click.option("--network", metavar="NAME", help="The network to train, if a program has several.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",  # `--resume` without a name
    metavar="[RUN]",
    type=RUN,
    help="Resume a run; the newest by default.",
)
@click.option(
    "--samples",
    metavar="YAML",
    help='Generate and score texts at every validation: "{number: 10, length: 500}".',
)
@click.option(
    "--devices",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of processes that train together on this machine.",
)
@runs_option()
@click.option(
    "--save-experiment",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.yaml",
    help="Write the experiment that is guessed for data.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plan, its costs and its time, measured over a few steps; write nothing.",
)
@click.option(
    "--quiet", "form", flag_value="quiet", help="Print only errors and the path of the run."
)
@json_option("Print progress and result as lines of JSON; with --dry-run, the plan.", form=True)
def command(
    file: str | None,
    overrides: tuple[str, ...],
    name: str | None,
    seed: int | None,
    seeds: int | None,
    network: str | None,
    resume: str | None,
    samples: str | None,
    devices: int,
    root: Path,
    save_experiment: Path | None,
    dry_run: bool,
    form: str | None,
) -> None:
    """Train a network: a .neural program, an experiment in YAML, or data.

    \b
    $ neural train novel.txt
    $ neural train clients.csv --save-experiment clients.yaml
    $ neural train examples/digits.neural
    $ neural train examples/digits.neural --set training.learning_rate=3e-4 --seed 1
    $ neural train examples/language_model/tiny.yaml --samples "{number: 5}"
    $ neural train examples/segmentation/articles.yaml --seeds 5
    $ neural train --resume

    For data the task is guessed, and printed as the experiment that it stands for: a text is a
    language model, a table a classification or regression, a folder per class a classification.
    Ctrl-C finishes the step and saves; a second Ctrl-C stops at once. Exit codes: 0 trained,
    1 failed, 2 errors in the files or options, 130 stopped.
    """
    if file is None and resume is None:
        raise click.UsageError("name a program, an experiment or data, or --resume a run")
    if file is not None and resume:
        raise click.UsageError("a run is resumed with its own settings: leave the file out")
    if name:
        overrides += (f"name={name}",)
    if seed is not None:
        overrides += (f"training.seed={seed}",)
    if seeds is not None:
        overrides += (f"training.seeds={seeds}",)
    planned_processes: AbstractContextManager[None] = nullcontext()
    if devices > 1 and "WORLD_SIZE" not in os.environ:
        from neural.training.launch import count_devices, launch_processes, plan_processes

        if devices > (most := count_devices()):
            raise click.UsageError(
                f"--devices {devices}: this machine has cores or GPUs for {most}"
            )
        if not dry_run:
            sys.exit(launch_processes(devices))
        planned_processes = plan_processes(devices)
    from neural.cli._run_selection import select_run
    from neural.training.guess_experiment import is_data
    from neural.training.launch import exit_worker
    from neural.workflows.train import TrainRequest

    if save_experiment is not None:
        if file is None or not is_data(Path(file)):
            raise click.UsageError("--save-experiment writes the experiment guessed for data")
        if save_experiment.exists():
            raise click.UsageError(f"{save_experiment} exists; name another file")
    if file is None:
        resume = str(select_run(resume or None, root, is_changed=True))
    request = TrainRequest(file, overrides, network, resume, samples, str(root))
    with planned_processes:
        prepared_training = _prepare_training(request, save_experiment, quiet=form == "quiet")
        if dry_run:
            _print_plan(prepared_training.task, as_json=form == "json")
            return
    exit_worker(_run_training(prepared_training, form or "text"))


def _prepare_training(
    request: TrainRequest, save_experiment: Path | None, *, quiet: bool
) -> PreparedTraining:
    """Load and check what is trained; print the experiment that is guessed for data.

    For a file of another kind, such as a sweep, the error names the command that reads it.
    """
    from neural.core.errors import TaskError
    from neural.core.settings import SettingsError
    from neural.workflows.train import prepare_training

    def on_guess(guess: ExperimentGuess) -> None:
        if os.environ.get("RANK", "0") != "0":  # only one of several processes prints
            return
        if not quiet:
            click.echo("\n".join(_format_guess(request.file, guess)), err=True)
        if save_experiment is not None:
            _write_experiment(save_experiment, guess)

    try:
        return prepare_training(request, on_guess=on_guess)
    except (SettingsError, TaskError):
        from neural.training.guess_experiment import is_data

        if request.file is not None and not is_data(Path(request.file)):
            from neural.cli._file_kind import require_kind

            require_kind(request.file, "experiment", "program")
        raise


def _format_guess(file: str | None, guess: ExperimentGuess) -> list[str]:
    """What was recognised, and the experiment, so that the user can change it."""
    yaml_lines = [f"  {line}" for line in guess.to_yaml().splitlines()]
    note = "the same as this experiment (--save-experiment FILE.yaml writes it):"
    return [f"{file}: {guess.reasons[0]}", *guess.reasons[1:], note, *yaml_lines, ""]


def _write_experiment(path: Path, guess: ExperimentGuess) -> None:
    """Write the guess as an experiment file; its `data` is relative to the file's folder."""
    from neural.core.errors import NeuralError, describe_os_error
    from neural.core.files import write_atomically

    data = Path(os.path.relpath(str(guess.settings["data"]), path.absolute().parent))
    data_text = str(data) if data.suffix or len(data.parts) > 1 else f"./{data}"
    header = "".join(f"# {reason}\n" for reason in guess.reasons)
    text = f"# neural train {path.name}\n#\n{header}{guess.with_data(data_text).to_yaml()}"
    try:
        write_atomically(path, text)
    except OSError as error:
        raise NeuralError(f"{path}: {describe_os_error(error)}") from None
    click.echo(f"written: {path}", err=True)


def _print_plan(task: Task, *, as_json: bool) -> None:
    if os.environ.get("RANK", "0") == "0":  # only one of several processes prints
        from neural.core.experiment import world_size
        from neural.workflows.training_time import estimate_seconds

        click.echo("measuring a few steps …", err=True)
        members = task.members() or (task,)
        times = estimate_seconds(members[0], world_size())
        plan = {**plan_training(task), **times._asdict()}
        plan["total_seconds"] *= len(members)
        click.echo(json.dumps(plan) if as_json else format_plan(plan))


def _run_training(prepared_training: PreparedTraining, form: str) -> int:
    """Train and print; `form` is text, json or quiet. Returns the exit code."""
    from neural.cli._formatting import path_argument, relative_path
    from neural.core.errors import CommandFailedError
    from neural.runs.errors import RunError
    from neural.workflows.train import train
    from neural.workflows.training_progress import show_progress

    run_path: Path | None = None
    has_trained = False

    def on_start(run: Run, task: Task, is_resumed: bool) -> None:
        nonlocal run_path
        run_path = run.path
        if form == "text":
            for note in task.notes:
                _print_note(note)
            click.echo(f"{'resumes' if is_resumed else 'run'} {relative_path(run_path)}", err=True)

    try:
        with show_progress(form, is_terminal=sys.stderr.isatty()) as show_step:

            def on_step(*arguments: Any) -> None:
                nonlocal has_trained
                has_trained = True
                show_step(*arguments)

            run, result = train(
                prepared_training, on_start=on_start, on_step=on_step, on_warning=_print_note
            )
    except KeyboardInterrupt:
        if run_path is not None:
            resume_command = f"neural train --resume {path_argument(run_path)}"
            click.echo(f"stopped at once; resume with: {resume_command}", err=True)
        raise
    except RunError as error:  # a full disk, a folder that was moved
        if not has_trained:
            raise
        raise CommandFailedError(str(error)) from None
    if run is not None:
        _print_result(run, result, form)
    return 0 if result.state == "finished" else 130


def _print_note(text: str) -> None:
    click.echo(f"note: {text}", err=True)


def _print_result(run: Run, result: TrainingResult, form: str) -> None:
    from neural.cli._formatting import format_scores, path_argument
    from neural.findings.run_loading import get_monitored_metric

    if form == "json":
        click.echo(
            json.dumps(
                {
                    "run": str(run.path),
                    "state": result.state,
                    "step": result.step,
                    "best": result.scores,
                    "message": result.message,
                }
            )
        )
        return
    if form == "quiet":
        click.echo(run.path)
        return
    monitored, _ = get_monitored_metric(str(run.settings.get("task", "")))
    # the score that selected the best checkpoint comes first
    names = sorted(result.scores, key=lambda name: name != monitored)
    best = format_scores({name: result.scores[name] for name in names}, "{:.4f}".format)
    click.echo(f"{result.state} after step {result.step:,}" + (f"; best: {best}" if best else ""))
    if result.state == "stopped":
        click.echo(f"resume with: neural train --resume {path_argument(run.path)}")
    else:
        if result.message:
            click.echo(result.message)
        click.echo(f"show it: neural show {path_argument(run.path)}")


def plan_training(task: Task) -> dict[str, Any]:
    """Network, data, number of steps and cost per step, as JSON-compatible data."""
    from neural.core.experiment import world_size
    from neural.optim.optimizer_factory import resolve_schedule
    from neural.training.engine import count_steps

    settings, tracking = task.experiment.training, task.experiment.tracking
    steps = count_steps(task, world_size())
    peak_learning_rate, _ = resolve_schedule(settings, task.optimizer, steps)
    examples_per_step = settings.batch_size * settings.batches_per_step
    network: Any = getattr(task, "network", None)
    cost = (
        {}
        if network is None
        else {
            "network": network.name,
            "parameters": network.cost.parameters,
            # 2 FLOP per multiply-add; the backward pass costs twice the forward pass.
            "gflop": 3 * 2 * network.cost.multiply_adds * examples_per_step / 1e9,
            "examples": examples_per_step,
            "megabytes": _estimate_megabytes(network.cost, settings.batch_size),
        }
    )
    return {
        "name": task.experiment.name or task.experiment.task,
        "task": task.experiment.task,
        **cost,
        "batches_per_epoch": task.batches_per_epoch,
        "batch_size": settings.batch_size,
        "steps": steps * (len(task.members()) or 1),
        "epochs": steps * settings.batches_per_step / max(1, task.batches_per_epoch),
        "optimizer": settings.optimizer,
        "learning_rate": peak_learning_rate,
        "scheduler": settings.scheduler,
        "track_every": tracking.track_every,
        "notes": list(task.notes),
    }


def format_plan(plan: Mapping[str, Any]) -> str:
    """The plan of `plan_training` as text; with the measured times if it has them."""
    from neural.cli._formatting import format_count, format_duration

    lines = [f"{plan['name']}: {plan['task']}"]
    if "network" in plan:
        lines += [
            f"  network      {plan['network']}, {plan['parameters']:,} parameters",
            f"  a step       {_format_flop(plan['gflop'])} "
            f"(forward and backward, {format_count(plan['examples'], 'example')})",
            f"  memory       {_format_megabytes(plan['megabytes'])} "
            "(weights, gradients, optimizer, activations)",
        ]
    lines += [
        f"  data         {plan['batches_per_epoch']:,} "
        f"batch{'es' * (plan['batches_per_epoch'] != 1)} of {plan['batch_size']} per epoch",
        f"  steps        {plan['steps']:,}, {plan['epochs']:.1f} epochs",
        *(
            [
                f"  time         about {format_duration(plan['total_seconds'])}; "
                f"a step takes {format_duration(plan['step_seconds'])} on this machine now"
            ]
            if "total_seconds" in plan
            else []
        ),
        "  optimizer    "
        + ", ".join(
            filter(
                None,
                (
                    plan["optimizer"],
                    f"peak learning rate {plan['learning_rate']:g}",
                    plan["scheduler"],
                ),
            )
        ),
    ]
    if not plan["track_every"]:
        lines.append("  attention    not captured")
    elif plan.get("has_attention", True):
        lines.append(f"  attention    captured every {plan['track_every']} steps")
    lines += [f"  note         {note}" for note in plan["notes"]]
    return "\n".join([*lines, "nothing was trained (--dry-run)"])


def _format_flop(gflop: float) -> str:
    """`3.94 GFLOP`, `3.94 MFLOP` or `3.94 kFLOP`."""
    for size, unit in ((1.0, "GFLOP"), (1e-3, "MFLOP")):
        if gflop >= size:
            return f"{gflop / size:,.2f} {unit}"
    return f"{gflop / 1e-6:.2f} kFLOP"


def _format_megabytes(megabytes: float) -> str:
    return f"about {megabytes:,.0f} MB" if megabytes >= 1 else "less than 1 MB"


def _estimate_megabytes(cost: Any, batch_size: int) -> float:
    """Memory of a training step; `cost` has numbers of parameters and activations per example."""
    # 4 bytes per float32. Weight, gradient and Adam's two moments: 4 numbers per parameter.
    return 4 * (4 * cost.parameters + batch_size * cost.activations) / 1e6
