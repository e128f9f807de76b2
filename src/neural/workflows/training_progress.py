"""Progress of a training in a terminal, in a notebook, or as lines of text or JSON.

`neural train` prints lines to standard output where there is no terminal. `neural.fit` prints to
standard error, and little: a training inside a script or a test must not flood its output.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neural.training.engine import TrainingProgress

LINE_INTERVAL_SECONDS = 5.0
"""Time between two progress lines without a bar, unless a validation comes first."""
SCRIPT_INTERVAL_SECONDS = 30.0
"""The same in `neural.fit`, where a validation prints no line."""
REDRAW_INTERVAL_SECONDS = 0.5
"""Time between two updates of the line in a notebook."""
MAX_BAR_SCORES = 2
"""Validation scores beside the progress bar."""
MAX_SCORES = 3
"""Validation scores in a progress line; all of them are in the run."""


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
        memory = _ScoreMemory()
        yield _LinePrinter(lambda progress: _format_line(memory.fill(progress)))


@contextmanager
def show_fit_progress() -> Iterator[Callable[[TrainingProgress], None]]:
    """The callback of `neural.fit`: a bar in a terminal, one line in a notebook, else few lines."""
    if is_notebook():
        line = _RedrawnLine()
        try:
            yield line
        finally:
            line.finish()
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _show_bar() as show_step:
            yield show_step
    else:
        yield _ScriptLines()


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


class _ScoreMemory:
    """Fills in the scores of the last validation, so that every line has the same columns."""

    def __init__(self) -> None:
        self.scores: dict[str, float] = {}

    def fill(self, progress: TrainingProgress) -> TrainingProgress:
        """The progress with its own scores, else the last ones."""
        self.scores = progress.scores or self.scores
        return replace(progress, scores=self.scores)


class _ScriptLines:
    """Prints a line every SCRIPT_INTERVAL_SECONDS, and one after the last step."""

    def __init__(self) -> None:
        self.last_time, self.memory = time.monotonic(), _ScoreMemory()

    def __call__(self, progress: TrainingProgress) -> None:
        progress = self.memory.fill(progress)
        now = time.monotonic()
        if progress.step == progress.steps or now - self.last_time >= SCRIPT_INTERVAL_SECONDS:
            self.last_time = now
            print(_format_line(progress), file=sys.stderr, flush=True)


class _RedrawnLine:
    """One line that is printed again and again in its place."""

    def __init__(self) -> None:
        self.last_time, self.width, self.memory = 0.0, 0, _ScoreMemory()

    def __call__(self, progress: TrainingProgress) -> None:
        now = time.monotonic()
        progress = self.memory.fill(progress)
        if progress.step < progress.steps and now - self.last_time < REDRAW_INTERVAL_SECONDS:
            return
        self.last_time = now
        text = _format_line(progress)
        # spaces overwrite the rest of a longer line before it
        print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = len(text)

    def finish(self) -> None:
        """End the line, if there is one."""
        if self.width:
            print(file=sys.stderr)


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
            print(self.format_line(progress), flush=True)


def _format_line(progress: TrainingProgress) -> str:
    texts = [
        *_format_member(progress),
        f"step {progress.step:,}/{progress.steps:,}",
        f"loss {progress.loss:.4f}",
        _format_speed(progress),
    ]
    scores = list((progress.scores or {}).items())[:MAX_SCORES]
    texts += [f"{name.removeprefix('valid/')} {value:.4f} (valid)" for name, value in scores]
    texts += [] if scores else ["loss – (valid)"]  # before the first validation
    texts += [_format_measure(progress)] if progress.attention_summary else []
    texts += [_format_time_left(progress)] if progress.step < progress.steps else []
    return "  ".join(texts)


def _progress_to_dict(progress: TrainingProgress) -> dict[str, object]:
    return {
        "step": progress.step,
        "steps": progress.steps,
        "loss": progress.loss,
        "learning_rate": progress.learning_rate,
        "steps_per_second": _steps_per_second(progress),
        "seconds_left": progress.seconds_left,
        "scores": progress.scores,
        "attention": dict([progress.attention_summary]) if progress.attention_summary else None,
        **({"member": progress.member, "members": progress.members} if progress.member else {}),
    }


def _format_member(progress: TrainingProgress) -> list[str]:
    """Which model of an ensemble is trained; nothing for a single model."""
    return [f"model {progress.member}/{progress.members}"] if progress.member else []


def _steps_per_second(progress: TrainingProgress) -> float | None:
    seconds = progress.seconds_per_step
    return None if seconds is None else 1 / max(seconds, 1e-9)


def _format_speed(progress: TrainingProgress) -> str:
    """Speed of the steps so far; `–` in the first few, which do not tell it yet."""
    speed = _steps_per_second(progress)
    if speed is None:
        return "– steps/s"
    return f"{speed:.1f} steps/s" if speed >= 1 else f"{1 / speed:.1f} s/step"


def _format_time_left(progress: TrainingProgress) -> str:
    seconds = progress.seconds_left
    return f"{'–' if seconds is None else _format_duration(seconds)} left"


def _format_measure(progress: TrainingProgress) -> str:
    """Name and mean of an attention measure in the last snapshot."""
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
        bar_task, score_texts = None, ["valid/loss –"]

        def show_step(progress: TrainingProgress) -> None:
            nonlocal bar_task, score_texts
            bar_task = bar.add_task("", total=progress.steps) if bar_task is None else bar_task
            if progress.scores:
                items = list(progress.scores.items())[:MAX_BAR_SCORES]
                score_texts = [f"{name} {value:.4f}" for name, value in items]
            texts = [
                *_format_member(progress),
                f"loss {progress.loss:.4f}",
                _format_time_left(progress),
                *score_texts,
                _format_speed(progress),
            ]
            texts += [_format_measure(progress)] if progress.attention_summary else []
            # Left of the texts are the count `step/steps`, the bar and a space after each.
            count_width = 2 * len(f"{progress.steps:,}") + 1
            max_width = console.width - count_width - bar_width - 2
            bar.update(
                bar_task, completed=progress.step, description=_join_fitting(texts, max_width)
            )

        yield show_step
