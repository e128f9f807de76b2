"""`neural sweep`: train an experiment with every combination of grid values and seeds.

A trial is one training. A sweep (neural.workflows.sweep) is a folder of runs, one per trial; its
rows are the states and scores of the trials. A setting, or point, is one combination of grid
values. A runner starts the trials' processes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import PROGRAM, SWEEP
from neural.cli._options import json_option, runs_option

if TYPE_CHECKING:
    from neural.workflows.sweep import Sweep


@click.command()
@click.argument("file", required=False, type=PROGRAM)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the experiment in all trials: training.steps=500.",
)
@click.option(
    "--runner",
    "runner",
    default="local",
    show_default=True,
    metavar="local|ray",
    help="Where trials run: in local processes or on a Ray cluster.",
)
@click.option(
    "--workers", type=click.IntRange(1), help="Trials at the same time; one per core by default."
)
@runs_option()
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",  # `--resume` without a folder
    metavar="[SWEEP]",
    type=SWEEP,
    help="Run the unfinished trials of a sweep; the newest by default.",
)
@click.option(
    "--confirm",
    type=click.IntRange(2),
    metavar="N",
    help="Afterwards train the best setting and the runner-up with N fresh seeds.",
)
@click.option(
    "--folds",
    type=click.IntRange(2),
    metavar="K",
    help="Cross-validation: hold out each of K folds once. FILE may also be an experiment.",
)
@click.option("--dry-run", is_flag=True, help="Check and list the trials without starting them.")
@json_option("Print the table as JSON at the end; with --dry-run, the trials.")
def command(
    file: str | None,
    overrides: tuple[str, ...],
    runner: str,
    workers: int | None,
    root: Path,
    resume: str | None,
    confirm: int | None,
    folds: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Train every combination of the grid values and seeds of a file.

    \b
    $ neural sweep examples/sweep.yaml --workers 2
    $ neural sweep examples/sweep.yaml --set training.steps=500
    $ neural sweep --resume
    $ neural sweep examples/sweep.yaml --confirm 5
    $ neural sweep examples/digits.yaml --folds 5       5-fold cross-validation
    $ RAY_ADDRESS=head:6379 neural sweep sweep.yaml --runner ray

    Ctrl-C stops all trials; --resume continues them. Exit codes: 0 all trained, 1 some failed,
    2 errors in the files, 130 stopped.
    """
    if (file is None) == (resume is None):
        raise click.UsageError("name the file of a sweep, or --resume a folder")
    if folds is not None and resume is not None:
        raise click.UsageError("a resumed sweep keeps its folds: leave --folds out")
    if overrides and resume is not None:
        raise click.UsageError("a resumed sweep keeps its settings: leave --set out")
    from neural.cli._file_kind import require_kind

    if file is not None:
        require_kind(file, "sweep", *(() if folds is None else ("experiment", "program")))
    _run_sweep(file, overrides, runner, workers, root, resume, confirm, folds, dry_run, as_json)


def _run_sweep(
    file: str | None,
    overrides: tuple[str, ...],
    runner_name: str,
    workers: int | None,
    runs: Path,
    resume: str | None,
    confirm: int | None,
    folds: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    from neural.cli._formatting import format_count, print_result, relative_path
    from neural.cli._run_selection import select_sweep
    from neural.cli._sweep_display import run_with_progress, sigterm_as_interrupt
    from neural.core.errors import TaskError
    from neural.training.runners import registry
    from neural.workflows.sweep import count_points, create_sweep, open_sweep
    from neural.workflows.sweep_result import SweepResult
    from neural.workflows.sweep_trials import read_sweep

    runner_type = registry.get(runner_name)
    open_or_create: Callable[[], Sweep]
    if file is not None:
        settings, experiment, trials = read_sweep(Path(file), folds=folds, overrides=overrides)
        if confirm and count_points(trials) < 2:
            raise TaskError(
                "--confirm trains the best setting and the runner-up: "
                "the grid needs two settings or more"
            )
        open_or_create = partial(
            create_sweep, runs, settings.name or Path(file).stem, settings, experiment, trials
        )
    else:
        resumed_sweep = open_sweep(select_sweep(resume or None, runs))
        resumed_sweep.refresh()
        open_or_create, trials = (
            (lambda: resumed_sweep),
            [row.trial for row in resumed_sweep.unfinished],
        )
    if dry_run:
        names = [trial.name for trial in trials]
        confirmation_text = f", then {2 * confirm} to confirm the best" if confirm else ""
        lines = [*names, f"{format_count(names, 'trial')}{confirmation_text}; nothing was started"]
        click.echo(json.dumps(names, indent=2) if as_json else "\n".join(lines))
        return
    # The runner comes before the folder: if it cannot start, nothing is written.
    with sigterm_as_interrupt(), runner_type(workers) as runner:
        sweep = open_or_create()
        trial_count = format_count(sweep.rows, "trial")
        click.echo(f"sweep {relative_path(sweep.path)}, {trial_count}", err=True)
        exit_code = run_with_progress(sweep, runner)
        if confirm and exit_code != 130:  # 130: stopped by Ctrl-C or SIGTERM
            if added_trials := sweep.add_confirmation(confirm):
                click.echo(
                    f"{format_count(added_trials, 'trial')} with fresh seeds to confirm the best",
                    err=True,
                )
            exit_code = max(exit_code, run_with_progress(sweep, runner))
    print_result(SweepResult(sweep), as_json=as_json)
    sys.exit(exit_code)
