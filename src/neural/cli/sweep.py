"""`neural sweep`: the same experiment with every combination of values and seeds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import PROGRAM

if TYPE_CHECKING:
    from neural.sweep import Sweep


@click.command()
@click.argument("file", required=False, type=PROGRAM)
@click.option("--on", "place", default="local", show_default=True, metavar="local|ray", help="Where trials run.")
@click.option("--workers", type=click.IntRange(1), help="Trials at the same time; by default one per core.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs go.")
@click.option("--resume", is_flag=False, flag_value="", metavar="[FOLDER]",
              help="Run what is not finished of a sweep; the newest if none is named.")  # fmt: skip
@click.option(
    "--confirm",
    type=click.IntRange(2),
    metavar="N",
    help="Then train the best setting and the runner-up with N fresh seeds.",
)
@click.option("--dry-run", is_flag=True, help="Check and list the trials; start none.")
@click.option("--json", "as_json", is_flag=True, help="The table as JSON, at the end; with --dry-run, the trials.")
def command(
    file: str | None, place: str, workers: int | None, runs: Path, resume: str | None, confirm: int | None,
    dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Train every seed and every combination of a grid's values.

    \b
    $ neural sweep examples/sweep.yaml --workers 2
    $ neural sweep --resume
    $ neural sweep examples/sweep.yaml --confirm 5
    $ RAY_ADDRESS=head:6379 neural sweep sweep.yaml --on ray

    Ctrl-C stops all trials so that --resume goes on with them. Exit codes: 0 all trained, 1 some failed, 2 mistakes,
    130 stopped.
    """
    if (file is None) == (resume is None):
        raise click.UsageError("name a sweep's file, or --resume a folder")
    from neural.cli._kinds import expect
    from neural.cli._mistakes import told

    if file is not None:
        expect(file, "sweep")
    with told():
        _sweep(file, place, workers, runs, resume, confirm, dry_run, as_json)


def _sweep(
    file: str | None, place: str, workers: int | None, runs: Path, resume: str | None, confirm: int | None,
    dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    from neural.cli._live import asked_to_stop, conducted, many
    from neural.cli._text import near
    from neural.cli._trials import said
    from neural.sweep import created, find_sweep, opened
    from neural.tasks.task import TaskError
    from neural.training.runners import registry
    from neural.trials import read_sweep

    runner = registry.get(place)
    make: Callable[[], Sweep]
    if file is not None:
        settings, experiment, trials = read_sweep(Path(file))
        if confirm and len({json.dumps(trial.point) for trial in trials}) < 2:
            raise TaskError("--confirm trains the best setting and the runner-up: the grid needs two settings or more")
        make = partial(created, runs, settings.name or Path(file).stem, settings, experiment, trials)
    else:
        old = opened(find_sweep(resume or None, runs))
        old.refresh()
        make, trials = (lambda: old), [row.trial for row in old.unfinished]
    if dry_run:
        names = [one.name for one in trials]
        later = f", then {2 * confirm} to confirm the best" if confirm else ""
        said_so = [*names, f"{many(names, 'trial')}{later}; nothing was started"]
        click.echo(json.dumps(names, indent=2) if as_json else "\n".join(said_so))
        return
    with asked_to_stop(), runner(workers) as ready:   # before the folder: nothing is written where this cannot be
        sweep = make()
        click.echo(f"sweep {near(sweep.path)}, {many(sweep.rows, 'trial')}", err=True)
        code = conducted(sweep, ready)
        if confirm and code != 130:
            if trials_added := sweep.add_confirmation(confirm):
                click.echo(f"{many(trials_added, 'trial')} with fresh seeds to confirm the best", err=True)
            code = max(code, conducted(sweep, ready))
    click.echo(said(sweep, as_json=as_json))
    sys.exit(code)
