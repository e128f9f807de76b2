"""How training is shown: a bar in a terminal, plain lines elsewhere, JSON for machines, or nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from neural.training.engine import Progress

EVERY = 5.0
"""Seconds between two plain lines, unless a validation comes first."""

MOST = 5
"""Scores of a validation in a plain line; the others are in the run."""


@contextmanager
def shown(form: str, *, terminal: bool) -> Iterator[Callable[[Progress], None]]:
    """What to call after every step; `form` is text, json or quiet."""
    if form == "quiet":
        yield lambda progress: None
    elif form == "json":
        yield _Lines(lambda one: json.dumps(_data(one)))
    elif terminal and os.environ.get("TERM") != "dumb":   # there a bar would be seen when it is full
        with _bar() as tell:
            yield tell
    else:
        yield _Lines(_line)


class _Lines:
    """A line now and then: after validations, after the last step, and when a while has passed."""

    def __init__(self, write: Callable[[Progress], str]) -> None:
        self.write, self.last = write, time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.scores or progress.step == progress.steps or now - self.last >= EVERY:
            self.last = now
            click.echo(self.write(progress))


def _line(progress: Progress) -> str:
    parts = [f"step {progress.step:,}/{progress.steps:,}", f"loss {progress.loss:.4f}", _speed(progress)]
    scores = list((progress.scores or {}).items())[:MOST]
    parts += [f"{name.removeprefix('valid/')} {value:.4f} (valid)" for name, value in scores]
    parts += [_looked(progress)] if progress.looked else []
    parts += [f"{_span(_left(progress))} left"] if progress.step < progress.steps else []
    return "  ".join(parts)


def _data(progress: Progress) -> dict[str, object]:
    return {
        "step": progress.step, "steps": progress.steps, "loss": progress.loss, "rate": progress.rate,
        "steps_per_second": progress.done / max(progress.seconds, 1e-9), "seconds_left": _left(progress),
        "scores": progress.scores, "attention": dict([progress.looked]) if progress.looked else None,
    }  # fmt: skip


def _left(progress: Progress) -> float:
    return (progress.steps - progress.step) * progress.seconds / max(progress.done, 1)


def _speed(progress: Progress) -> str:
    speed = progress.done / max(progress.seconds, 1e-9)
    return f"{speed:.1f} steps/s" if speed >= 1 else f"{1 / speed:.1f} s/step"


def _looked(progress: Progress) -> str:
    assert progress.looked is not None
    name, value = progress.looked
    return f"{name.replace('_', ' ')} {value:.3f}"


def _span(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _fitting(parts: list[str], room: int) -> str:
    """The first of the parts, as many as there is room for: what is cut off in the middle says nothing."""
    while len(parts) > 1 and len("  ".join(parts)) > room:
        parts = parts[:-1]
    return "  ".join(parts)


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    wide = min(40, max(8, console.width - 90))
    columns = TextColumn("{task.completed:,}/{task.total:,}"), BarColumn(wide), TextColumn("{task.description}")
    with Bar(*columns, console=console, transient=False) as bar:
        task, valid = None, list[str]()

        def tell(progress: Progress) -> None:
            nonlocal task, valid
            task = bar.add_task("", total=progress.steps) if task is None else task
            if progress.scores:
                valid = [f"{name} {value:.4f}" for name, value in list(progress.scores.items())[:2]]
            parts = [f"loss {progress.loss:.4f}", f"{_span(_left(progress))} left", *valid, _speed(progress)]
            parts += [_looked(progress)] if progress.looked else []
            room = console.width - wide - 2 * len(f"{progress.steps:,}") - 3   # a slash and two blanks
            bar.update(task, completed=progress.step, description=_fitting(parts, room))

        yield tell
