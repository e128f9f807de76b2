"""Running a sweep with progress on the terminal, and its results as tables or JSON.

A sweep (neural.workflows.sweep) trains one run per trial and has a row (TrialRecord) for each. A
grid point is one combination of the grid's values, trained with several seeds. A confirmation
trains the best point and the runner-up again, with seeds that were not used to select them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from neural.cli import _formatting
from neural.core.escape import shorten
from neural.core.platform_support import STOP_SIGNALS
from neural.training.runner import Runner
from neural.workflows.sweep import Sweep, TrialRecord, run_sweep

MAX_NAME_WIDTH = 46
MAX_VALUE_WIDTH = 24
MAX_REASON_WIDTH = 90
"""Characters of a trial's name, a grid value and the reason of a failure."""


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Treat every stop signal like Ctrl-C, so that all trials are stopped in order."""

    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous_handlers = {
        number: signal.signal(number, raise_interrupt)
        for number in STOP_SIGNALS
        if number != signal.SIGINT
    }
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def run_with_progress(sweep: Sweep, runner: Runner, *, quiet: bool = False) -> int:
    """Run every unfinished trial; `quiet` prints no progress. Returns the exit code.

    0 all trained, 1 some failed, 130 stopped.
    """
    try:
        if quiet:
            run_sweep(sweep, runner)
        else:
            with _print_progress(sweep) as on_change:
                run_sweep(sweep, runner, on_change)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        return 130
    return 1 if sweep.unfinished else 0


@contextmanager
def _print_progress(sweep: Sweep) -> Iterator[Callable[[TrialRecord], None]]:
    """Print a line per state change; on a terminal also a status line that is overwritten."""
    is_terminal = sys.stderr.isatty()
    clear_line = "\r\033[K" if is_terminal else ""
    printed_states: dict[str, tuple[str, int]] = {}  # trial name → (state, attempts)

    def on_change(row: TrialRecord) -> None:
        state = row.state, row.attempts
        if printed_states.get(row.trial.name) != state and row.state != "waiting":
            printed_states[row.trial.name] = state
            click.echo(clear_line + format_change(row), err=True)
        if is_terminal:
            click.echo(clear_line + format_progress(sweep), err=True, nl=False)

    try:
        yield on_change
    finally:
        if is_terminal:
            click.echo(clear_line, err=True, nl=False)


def format_change(row: TrialRecord) -> str:
    """A line about a trial whose state has changed."""
    state = _formatting.style_state(row.state)
    if row.state == "finished":
        return f"{state}  {row.trial.name}  {_formatting.format_number(row.score)}"
    if row.state == "failed":
        reason = shorten(row.reason, MAX_REASON_WIDTH)
        return f"{state}    {row.trial.name}  attempt {row.attempts}: {reason}"
    attempt = f"  attempt {row.attempts}" if row.attempts > 1 else ""
    return f"{state}   {row.trial.name}{attempt}"


def format_progress(sweep: Sweep) -> str:
    """The state of all trials on one line."""
    counts = sweep.count_states()
    texts = [f"{counts['finished']}/{counts['trials']} finished"]
    texts += [f"{counts[state]} {state}" for state in ("failed", "waiting") if counts[state]]
    running = [row for row in sweep.rows if row.state == "running"]
    steps = ", ".join(f"{row.step:,}" + (f"/{row.steps:,}" if row.steps else "") for row in running)
    texts += [f"{len(running)} running at step {steps}"] if running else []
    return shorten(", ".join(texts), _formatting.terminal_width() - 1)
