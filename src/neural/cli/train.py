"""`neural train`: train a program or an experiment into a run folder.

A program is a `.neural` file: a network and its training. An experiment is a YAML file: a task
(neural.tasks) and its settings. Output has one of three forms: text, json or quiet.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import PROGRAM, RUN

if TYPE_CHECKING:
    from neural.runs.run import Run
    from neural.tasks.task import Task
    from neural.training.engine import TrainingProgress, TrainingResult
    from neural.workflows.train import PreparedTraining, TrainRequest

LINE_INTERVAL_SECONDS = 5.0
"""Time between two progress lines without a bar, unless a validation comes first."""
MAX_BAR_SCORES = 2
"""Validation scores beside the progress bar."""
MAX_SCORES = 5
"""Validation scores in a progress line; all of them are in the run."""


class _TrainCommand(click.Command):
    """Suggests `--set` if a key of the experiment is used as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; the error for `--steps` says to write `--set training.steps=…`."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from neural.core.experiment import TrainingSettings

            name = error.option_name.lstrip("-").replace("-", "_")
            key = "learning_rate" if name == "lr" else name
            if key in TrainingSettings.model_fields:
                message = f"there is no option {error.option_name}: use --set training.{key}=…"
                raise click.UsageError(message, ctx) from None
            raise


@click.command(cls=_TrainCommand)
@click.argument("file", required=False, type=PROGRAM)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the experiment: training.steps=500.",
)
@click.option("--name", metavar="TEXT", help="Name of the run, used in the name of its folder.")
@click.option("--seed", type=int, help="Short for --set training.seed=…")
@click.option("--network", metavar="NAME", help="The network to train, if a program has several.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
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
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder for the runs.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and its costs; write nothing.")
@click.option(
    "--quiet", "form", flag_value="quiet", help="Print only errors and the path of the run."
)
@click.option(
    "--json",
    "form",
    flag_value="json",
    help="Print progress and result as lines of JSON; with --dry-run, the plan.",
)
def command(
    file: str | None,
    overrides: tuple[str, ...],
    name: str | None,
    seed: int | None,
    network: str | None,
    resume: str | None,
    samples: str | None,
    devices: int,
    runs: Path,
    dry_run: bool,
    form: str | None,
) -> None:
    """Train a network: a .neural program, or an experiment in YAML.

    \b
    $ neural train examples/digits.neural
    $ neural train examples/digits.neural --set training.learning_rate=3e-4 --seed 1
    $ neural train examples/language_model/tiny.yaml --samples "{number: 5}"
    $ neural train --resume

    Ctrl-C finishes the step and saves; a second Ctrl-C stops at once. Exit codes: 0 trained,
    1 failed, 2 errors in the files or options, 130 stopped.
    """
    if file is None and resume is None:
        raise click.UsageError("name a program or an experiment, or --resume a run")
    if file is not None and resume:
        raise click.UsageError("a run is resumed with its own settings: leave the file out")
    if name:
        overrides += (f"name={name}",)
    if seed is not None:
        overrides += (f"training.seed={seed}",)
    if devices > 1 and "WORLD_SIZE" not in os.environ:
        from neural.training.launch import launch_processes

        sys.exit(launch_processes(devices))
    from neural.cli._errors import report_errors

    with report_errors():
        from neural.workflows.train import TrainRequest

        request = TrainRequest(file, overrides, network, resume, samples, str(runs))
        prepared_training = _prepare_training(request)
        if dry_run:
            _print_plan(prepared_training.task, as_json=form == "json")
        else:
            sys.exit(_run_training(prepared_training, form or "text"))


def _prepare_training(request: TrainRequest) -> PreparedTraining:
    """Load and check what is trained; for a file of another kind, name the verb for it."""
    from neural.core.errors import TaskError
    from neural.core.settings import SettingsError
    from neural.workflows.train import prepare_training

    try:
        return prepare_training(request)
    except (SettingsError, TaskError):
        if request.file is not None:
            from neural.cli._file_kind import require_kind

            require_kind(request.file, "experiment", "program")
        raise


def _print_plan(task: Task, *, as_json: bool) -> None:
    if os.environ.get("RANK", "0") == "0":  # only one of several processes prints
        click.echo(json.dumps(plan_training(task)) if as_json else format_plan(task))


def _run_training(prepared_training: PreparedTraining, form: str) -> int:
    """Train and print; `form` is text, json or quiet. Returns the exit code."""
    from neural.cli._formatting import relative_path
    from neural.workflows.train import train

    run_path: Path | None = None

    def on_start(run: Run, task: Task, is_resumed: bool) -> None:
        nonlocal run_path
        run_path = run.path
        if form == "text":
            for note in task.notes:
                _print_note(note)
            click.echo(f"{'resumes' if is_resumed else 'run'} {relative_path(run_path)}", err=True)

    try:
        with show_progress(form, is_terminal=sys.stderr.isatty()) as show_step:
            run, result = train(
                prepared_training, on_start=on_start, on_step=show_step, on_warning=_print_note
            )
    except KeyboardInterrupt:
        if run_path is not None:
            resume_command = f"neural train --resume {relative_path(run_path)}"
            click.echo(f"stopped at once; resume with: {resume_command}", err=True)
        raise
    if run is not None:
        _print_result(run, result, form)
    return 0 if result.state == "finished" else 130


def _print_note(text: str) -> None:
    click.echo(f"note: {text}", err=True)


def _print_result(run: Run, result: TrainingResult, form: str) -> None:
    from neural.cli._formatting import relative_path

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
    best = "  ".join(f"{name} {value:.4f}" for name, value in result.scores.items())
    click.echo(f"{result.state} after step {result.step:,}" + (f"; best: {best}" if best else ""))
    if result.state == "stopped":
        click.echo(f"resume with: neural train --resume {relative_path(run.path)}")
    else:
        if result.message:
            click.echo(result.message)
        click.echo(f"show it: neural show {relative_path(run.path)}")


@contextmanager
def show_progress(form: str, *, is_terminal: bool) -> Iterator[Callable[[TrainingProgress], None]]:
    """A callback for every training step; `form` is text, json or quiet."""
    if form == "quiet":
        yield lambda progress: None
    elif form == "json":
        yield _LinePrinter(lambda progress: json.dumps(_progress_to_dict(progress)))
    # A dumb terminal cannot redraw a bar: it would appear when it is full.
    elif is_terminal and os.environ.get("TERM") != "dumb":
        with _show_bar() as show_step:
            yield show_step
    else:
        yield _LinePrinter(_format_line)


class _LinePrinter:
    """Prints a line after validations, after the last step, and every LINE_INTERVAL_SECONDS."""

    def __init__(self, format_line: Callable[[TrainingProgress], str]) -> None:
        self.format_line, self.last_time = format_line, time.monotonic()

    def __call__(self, progress: TrainingProgress) -> None:
        now = time.monotonic()
        if (
            progress.scores
            or progress.step == progress.steps
            or now - self.last_time >= LINE_INTERVAL_SECONDS
        ):
            self.last_time = now
            click.echo(self.format_line(progress))


def _format_line(progress: TrainingProgress) -> str:
    texts = [
        f"step {progress.step:,}/{progress.steps:,}",
        f"loss {progress.loss:.4f}",
        _format_speed(progress),
    ]
    scores = list((progress.scores or {}).items())[:MAX_SCORES]
    texts += [f"{name.removeprefix('valid/')} {value:.4f} (valid)" for name, value in scores]
    texts += [_format_measure(progress)] if progress.attention_summary else []
    texts += (
        [f"{_format_duration(_seconds_left(progress))} left"]
        if progress.step < progress.steps
        else []
    )
    return "  ".join(texts)


def _progress_to_dict(progress: TrainingProgress) -> dict[str, object]:
    return {
        "step": progress.step,
        "steps": progress.steps,
        "loss": progress.loss,
        "learning_rate": progress.learning_rate,
        "steps_per_second": progress.steps_done / max(progress.seconds, 1e-9),
        "seconds_left": _seconds_left(progress),
        "scores": progress.scores,
        "attention": dict([progress.attention_summary]) if progress.attention_summary else None,
    }


def _seconds_left(progress: TrainingProgress) -> float:
    return (progress.steps - progress.step) * progress.seconds / max(progress.steps_done, 1)


def _format_speed(progress: TrainingProgress) -> str:
    speed = progress.steps_done / max(progress.seconds, 1e-9)
    return f"{speed:.1f} steps/s" if speed >= 1 else f"{1 / speed:.1f} s/step"


def _format_measure(progress: TrainingProgress) -> str:
    """Name and mean of the attention measure that changed most in the last snapshot."""
    assert progress.attention_summary is not None
    name, value = progress.attention_summary
    return f"{name.replace('_', ' ')} {value:.3f}"


def _format_duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _join_fitting(texts: list[str], max_width: int) -> str:
    """Join as many of the first texts as fit; none is cut in the middle."""
    while len(texts) > 1 and len("  ".join(texts)) > max_width:
        texts = texts[:-1]
    return "  ".join(texts)


@contextmanager
def _show_bar() -> Iterator[Callable[[TrainingProgress], None]]:
    """A progress bar on stderr; yields the callback that updates it after a step."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    bar_width = min(40, max(8, console.width - 90))  # leaves 90 columns for the texts
    columns = (
        TextColumn("{task.completed:,}/{task.total:,}"),
        BarColumn(bar_width),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=False) as bar:
        bar_task, score_texts = None, list[str]()

        def show_step(progress: TrainingProgress) -> None:
            nonlocal bar_task, score_texts
            bar_task = bar.add_task("", total=progress.steps) if bar_task is None else bar_task
            if progress.scores:
                items = list(progress.scores.items())[:MAX_BAR_SCORES]
                score_texts = [f"{name} {value:.4f}" for name, value in items]
            texts = [
                f"loss {progress.loss:.4f}",
                f"{_format_duration(_seconds_left(progress))} left",
                *score_texts,
                _format_speed(progress),
            ]
            texts += [_format_measure(progress)] if progress.attention_summary else []
            # The count is `step/steps`, then two spaces.
            max_width = console.width - bar_width - 2 * len(f"{progress.steps:,}") - 3
            bar.update(
                bar_task, completed=progress.step, description=_join_fitting(texts, max_width)
            )

        yield show_step


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
        "steps": steps,
        "epochs": steps * settings.batches_per_step / max(1, task.batches_per_epoch),
        "optimizer": settings.optimizer,
        "learning_rate": peak_learning_rate,
        "scheduler": settings.scheduler,
        "track_every": tracking.track_every,
        "notes": list(task.notes),
    }


def format_plan(task: Task) -> str:
    """The plan of `plan_training` as text."""
    plan = plan_training(task)
    lines = [f"{plan['name']}: {plan['task']}"]
    if "network" in plan:
        lines += [
            f"  network      {plan['network']}, {plan['parameters']:,} parameters",
            f"  a step       {plan['gflop']:,.2f} GFLOP "
            f"(forward and backward, {plan['examples']} examples)",
            f"  memory       about {plan['megabytes']:,.0f} MB "
            "(weights, gradients, optimizer, activations)",
        ]
    lines += [
        f"  data         {plan['batches_per_epoch']:,} batches of {plan['batch_size']} per epoch",
        f"  steps        {plan['steps']:,}, {plan['epochs']:.1f} epochs",
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
        "  attention    "
        + (
            f"captured every {plan['track_every']} steps" if plan["track_every"] else "not captured"
        ),
    ]
    lines += [f"  note         {note}" for note in plan["notes"]]
    return "\n".join([*lines, "nothing was written (--dry-run)"])


def _estimate_megabytes(cost: Any, batch_size: int) -> float:
    """Memory of a training step; `cost` has numbers of parameters and activations per example."""
    # 4 bytes per float32. Weight, gradient and Adam's two moments: 4 numbers per parameter.
    return 4 * (4 * cost.parameters + batch_size * cost.activations) / 1e6
