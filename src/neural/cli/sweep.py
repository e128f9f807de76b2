"""`neural sweep`: the same experiment with every combination of values and seeds."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from neural.sweep import Row, Sweep


@click.command()
@click.argument("file", required=False)
@click.option("--on", "place", default="local", show_default=True, metavar="local|ray", help="Where trials run.")
@click.option("--workers", type=click.IntRange(1), help="Trials at the same time; by default one per core.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs go.")
@click.option("--resume", is_flag=False, flag_value="", metavar="[FOLDER]",
              help="Run what is not finished of a sweep; the newest if none is named.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Check and list the trials; start none.")
@click.option("--json", "as_json", is_flag=True, help="The table as JSON, at the end.")
def command(
    file: str | None, place: str, workers: int | None, runs: Path, resume: str | None, dry_run: bool, as_json: bool
) -> None:
    """Train an experiment with every seed and every combination of a grid's values.

    \b
    $ neural sweep examples/sweep.yaml --workers 2
    $ neural sweep --resume
    $ RAY_ADDRESS=head:6379 neural sweep sweep.yaml --on ray

    Ctrl-C stops all trials so that --resume goes on with them. Exit codes: 0 all trained, 1 some failed, 2 mistakes,
    130 stopped.
    """
    if (file is None) == (resume is None):
        raise click.UsageError("name a sweep's file, or --resume a folder")
    from neural.cli._mistakes import told

    with told():
        _sweep(file, place, workers, runs, resume, dry_run, as_json)


def _sweep(
    file: str | None, place: str, workers: int | None, runs: Path, resume: str | None, dry_run: bool, as_json: bool
) -> None:
    from neural.cli._trials import said
    from neural.sweep import created, find_sweep, opened
    from neural.sweeping import go
    from neural.training.runners import registry
    from neural.trials import read_sweep

    runner = registry.get(place)
    make: Callable[[], Sweep]
    if file is not None:
        settings, experiment, trials = read_sweep(Path(file))
        make = partial(created, runs, settings.name or Path(file).stem, settings, experiment, trials)
    else:
        old = opened(find_sweep(resume or None, runs))
        old.refresh()
        make, trials = (lambda: old), [row.trial for row in old.unfinished]
    if dry_run:
        names = [one.name for one in trials]
        click.echo("\n".join([*names, f"{_many(names)}; nothing was started"]))
        return
    with asked_to_stop(), runner(workers) as ready:   # before the folder: nothing is written where this cannot be
        sweep = make()
        click.echo(f"sweep {near(sweep.path)}, {_many(sweep.rows)}", err=True)
        try:
            with shown(sweep) as tell:
                go(sweep, ready, tell)
            code = 1 if sweep.unfinished else 0
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            code = 130
    click.echo(said(sweep, as_json=as_json))
    sys.exit(code)


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


@contextmanager
def shown(sweep: Sweep) -> Iterator[Callable[[Row], None]]:
    """A line for every change; in a terminal also one at the bottom that says how far all are."""
    from neural.cli import _trials

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


def _many(trials: Sequence[object]) -> str:
    return f"{len(trials)} trial" + ("" if len(trials) == 1 else "s")


def near(path: Path) -> Path:
    """As seen from here, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
