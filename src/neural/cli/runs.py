"""`neural runs`: list the runs of a folder and their progress; copy, merge and upgrade runs.

A run is the folder of one training; a sweep is a folder of runs, its trials, and their results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import RUN
from neural.cli._options import json_option, runs_option

if TYPE_CHECKING:
    from neural.workflows.copy_runs import CopiedRun

MAX_SHOWN_RUNS = 50
"""Runs in the table without --all."""

ALIASES = ("list", "ls")
"""Other names of this command."""


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND] …")
@click.option("--all", "show_all", is_flag=True, help=f"Not only the newest {MAX_SHOWN_RUNS}.")
@runs_option()
@json_option("Print all runs as JSON.")
@click.pass_context
def command(context: click.Context, show_all: bool, root: Path, as_json: bool) -> None:
    """List runs, newest last: state, steps, best score, age; copy, merge or upgrade them.

    \b
    $ neural runs
    $ neural runs --all
    $ neural runs --json | jq '.[] | select(.state == "failed") | .name'
    $ neural runs copy tiny /shared/runs
    $ neural runs merge node-1/runs node-2/runs /shared/runs
    $ neural runs upgrade runs/2026-11-16_00-51-23_tiny

    `lost`: the process of the run ended without saving a result; `neural train --resume RUN`
    resumes it.
    """
    if context.invoked_subcommand is not None:
        return

    from neural.cli._formatting import print_result
    from neural.workflows.runs import list_runs

    summaries = list_runs(root, newest=None if show_all or as_json else MAX_SHOWN_RUNS)
    if as_json:
        click.echo(json.dumps(summaries.to_dict()["runs"], indent=2))
    elif summaries:
        print_result(summaries)
    else:
        click.echo(f"no runs in {root} yet; `neural train` creates one")


rename_option = click.option(
    "--rename",
    is_flag=True,
    help="If another run has the same name, add a number instead of refusing.",
)


@command.command(name="copy")
@click.argument("runs", nargs=-1, required=True, type=RUN, metavar="RUN…")
@click.argument("target", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER")
@rename_option
@runs_option()
@json_option("Print what happened to each run as JSON.")
def copy_command(
    runs: tuple[str, ...], target: Path, rename: bool, root: Path, as_json: bool
) -> None:
    """Copy runs or sweeps into the folder FOLDER, also while they are written.

    \b
    $ neural runs copy tiny /shared/runs
    $ neural runs copy $SLURM_TMPDIR/runs/2026-11-16_00-51-23_tiny /shared/runs

    A copy appears complete or not at all, its checkpoints are verified, and it can be resumed. An
    older copy of the same run is replaced, a newer one is kept. Exit code 2 if one was refused.
    """
    from neural.cli._run_selection import select_run_or_sweep

    sources = [select_run_or_sweep(name, root, is_changed=True) for name in runs]
    sys.exit(2 if _copy_and_print(sources, target, rename, as_json) else 0)


@command.command(name="merge")
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER…",
)
@click.argument("target", type=click.Path(path_type=Path, file_okay=False), metavar="TARGET")
@rename_option
@click.option(
    "--every",
    "seconds",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Copy again and again, until Ctrl-C or SIGTERM; print only what changed.",
)
@json_option("Print what happened to each run as JSON.")
def merge_command(
    folders: tuple[Path, ...], target: Path, rename: bool, seconds: float | None, as_json: bool
) -> None:
    """Copy all runs of each FOLDER into the folder TARGET.

    \b
    $ neural runs merge node-1/runs node-2/runs /shared/runs
    $ neural runs merge $SLURM_TMPDIR/runs /shared/runs --every 600 &

    The rules are those of `neural runs copy`. Copies of one run that were trained separately are
    not mixed: the second is refused, or gets another name with --rename.
    """
    from neural.workflows.copy_runs import copy_repeatedly

    if seconds is None:
        has_refused = _copy_and_print(folders, target, rename, as_json)
    else:
        has_refused = False

        def copy() -> None:
            nonlocal has_refused
            has_refused = _copy_and_print(folders, target, rename, as_json, only_changes=True)

        copy_repeatedly(copy, seconds)
    sys.exit(2 if has_refused else 0)


@command.command(name="upgrade")
@click.argument("runs", nargs=-1, required=True, type=RUN, metavar="RUN…")
@runs_option()
def upgrade_command(runs: tuple[str, ...], root: Path) -> None:
    """Convert runs that an older neural wrote, in version 2 of the run folder.

    \b
    $ neural runs upgrade runs/2026-11-16_00-51-23_tiny

    The new folder has `-upgraded` after its name, and all curves, measures, maps and checkpoints.
    The old folder is kept.
    """
    from neural.cli._formatting import relative_path
    from neural.cli._run_selection import select_run
    from neural.runs.upgrade import upgrade_run

    for name in runs:
        path = select_run(name, root, is_changed=True)
        click.echo(f"upgraded: {relative_path(upgrade_run(path))}")
        click.echo(f"the old folder is kept: {relative_path(path)}", err=True)


def _copy_and_print(
    sources: Sequence[Path],
    target: Path,
    rename: bool,
    as_json: bool,
    *,
    only_changes: bool = False,
) -> bool:
    """Copy and print a line for each run; returns whether one was refused."""
    from neural.workflows.copy_runs import copy_runs

    def on_copied(result: CopiedRun) -> None:
        is_shown = not only_changes or result.outcome not in ("unchanged", "kept")
        if not as_json and is_shown:
            _print_copied(result)

    results = copy_runs(sources, target, rename=rename, on_copied=on_copied)
    if as_json:
        click.echo(json.dumps([result.to_dict() for result in results], indent=2))
    elif not results and not only_changes:
        click.echo(f"no runs in {', '.join(map(str, sources))}", err=True)
    return any(result.outcome == "refused" for result in results)


def _print_copied(result: CopiedRun) -> None:
    from neural.core.escape import escape_controls

    if result.outcome == "refused":
        message = f"error: {result.source} was not copied: {result.message}"
        click.echo(escape_controls(message), err=True)
    else:
        click.echo(escape_controls(f"{result.outcome:9}  {result.target}"))
