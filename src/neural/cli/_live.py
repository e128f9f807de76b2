"""Trials that run, in a terminal: what is said meanwhile, and how they are asked to stop."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager

import click

from neural.cli import _trials
from neural.sweep import Row, Sweep
from neural.sweeping import go
from neural.training.runner import Runner


@contextmanager
def asked_to_stop() -> Iterator[None]:
    """SIGTERM is taken for Ctrl-C."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def conducted(sweep: Sweep, runner: Runner, *, quiet: bool = False) -> int:
    """Run every trial that is not finished; the exit code: 0 all trained, 1 some failed, 130 stopped."""
    try:
        if quiet:
            go(sweep, runner)
        else:
            with _shown(sweep) as tell:
                go(sweep, runner, tell)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        return 130
    return 1 if sweep.unfinished else 0


@contextmanager
def _shown(sweep: Sweep) -> Iterator[Callable[[Row], None]]:
    """A line for every change; in a terminal also one at the bottom that says how far all are."""
    live = sys.stderr.isatty()
    states: dict[str, tuple[str, int]] = {}

    def tell(row: Row) -> None:
        now = row.state, row.attempts
        if states.get(row.trial.name) != now and row.state != "waiting":
            states[row.trial.name] = now
            click.echo(("\r\033[K" if live else "") + _trials.ended(row), err=True)
        if live:
            click.echo(f"\r\033[K{_trials.progress(sweep)}", err=True, nl=False)

    try:
        yield tell
    finally:
        if live:
            click.echo("\r\033[K", err=True, nl=False)


def many(things: Sized, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")

