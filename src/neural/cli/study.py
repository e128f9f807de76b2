"""`neural study`: how attention evolves during training, over texts and seeds, with a report.

A study (neural.workflows.study) is a sweep over texts × seeds: one language model per trial, with
attention snapshots and evaluations at the same steps. Output has one of three forms: text, json or
quiet. `--plan` prints the power of the study's tests, that is, how often they would find an effect.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import PROGRAM
from neural.cli._formatting import (
    format_count,
    format_duration,
    format_table,
    relative_path,
    style_heading,
)
from neural.cli._options import json_option, runs_option
from neural.core.platform_support import count_cores, quote_command

if TYPE_CHECKING:
    from neural.workflows.study import Study
    from neural.workflows.study_report import StudyReport
    from neural.workflows.sweep import Sweep

DEFAULT_RUNS_DIR = Path("runs")
PLANNED_SEED_COUNTS = (5, 7, 10, 15)
"""Numbers of seeds that `--plan` shows, beside that of the file."""
PLANNED_CORRELATIONS = (0.2, 0.3, 0.5)
"""True correlations between changes of two measures, for which `--plan` shows the power."""


@click.command()
@click.argument("file", type=PROGRAM)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the study: seeds=[0,1].",
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
    "--new", is_flag=True, help="Start from the beginning, even if this study was started before."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check, time a few steps and print the total time; write nothing.",
)
@click.option(
    "--plan",
    is_flag=True,
    help="Print which effects several numbers of seeds find, and their time; write nothing.",
)
@click.option(
    "--quiet", "form", flag_value="quiet", help="Print only errors and the path of the report."
)
@json_option(
    "Print the findings as JSON at the end; with --dry-run or --plan, the plan.", form=True
)
def command(
    file: str,
    overrides: tuple[str, ...],
    runner: str,
    workers: int | None,
    root: Path,
    new: bool,
    dry_run: bool,
    plan: bool,
    form: str | None,
) -> None:
    """Study how attention evolves: train language models on several texts and seeds; report.

    \b
    $ neural study examples/language_model/evolution.yaml
    $ neural study examples/language_model/evolution_full.yaml --dry-run
    $ neural study examples/language_model/evolution.yaml --plan

    Started again with the same files, it resumes: finished trials are not trained again. Exit
    codes: 0 all trained, 1 some failed, 2 errors in the files, 130 stopped.
    """
    from neural.cli._file_kind import require_kind

    require_kind(file, "study")
    sys.exit(_run_study(file, overrides, runner, workers, root, new, dry_run, plan, form or "text"))


def _run_study(
    file: str,
    overrides: tuple[str, ...],
    runner_name: str,
    workers: int | None,
    runs: Path,
    force_new: bool,
    dry_run: bool,
    plan: bool,
    form: str,
) -> int:
    """Train or resume the study and print its report. Returns the exit code."""
    from neural.cli._sweep_display import run_with_progress, sigterm_as_interrupt
    from neural.training.runners import registry
    from neural.workflows.study import open_or_create_study, read_study

    runner_type = registry.get(runner_name)
    study = read_study(Path(file), overrides)
    if form == "text":
        for note in study.notes:
            click.echo(f"note: {note}", err=True)
    if plan:
        return _print_plan(study, workers, as_json=form == "json")
    if dry_run:
        return _print_dry_run(study, workers, as_json=form == "json")
    command_words = ["neural", "study", file]
    command_words += [argument for override in overrides for argument in ("--set", override)]
    command_words += ["--runs", str(runs)] if runs != DEFAULT_RUNS_DIR else []
    # The runner comes before the folder: if it cannot start, nothing is written.
    with sigterm_as_interrupt(), runner_type(workers) as runner:
        sweep, is_resumed = open_or_create_study(
            study, runs, quote_command(command_words), force_new=force_new
        )
        if form == "text":
            sweep_text = f"{relative_path(sweep.path)}, {format_count(sweep.rows, 'trial')}"
            if is_resumed:
                unfinished_text = f"{len(sweep.unfinished)} to train; --new would start again"
                click.echo(f"resumes {sweep_text}, {unfinished_text}", err=True)
            else:
                click.echo(f"study {sweep_text}", err=True)
        exit_code = run_with_progress(sweep, runner, quiet=form != "text")
    if exit_code == 130:  # stopped by Ctrl-C or SIGTERM
        click.echo(f"resume with: {sweep.metadata['command']}", err=True)
    else:
        _print_report(sweep, form)
    return exit_code


def _print_report(sweep: Sweep, form: str) -> None:
    """Write the report and print its findings."""
    import json

    from neural.workflows.study_report import study_as_dict, write_study_report

    report = write_study_report(sweep)
    if form == "json":
        click.echo(json.dumps(study_as_dict(sweep, report), indent=2, ensure_ascii=False))
    elif report is not None and form == "quiet":
        click.echo(report.html_path)
    else:
        click.echo("\n".join(_format_report(sweep, report)))


def _format_report(sweep: Sweep, report: StudyReport | None) -> list[str]:
    from neural.cli._formatting import format_section_lines
    from neural.findings.findings import format_findings
    from neural.workflows.sweep_result import build_trials_section

    lines = format_section_lines(build_trials_section(sweep))
    if report is None:
        return [*lines, "", "no trial is finished: nothing to report"]
    for group in report.groups:
        lines += ["", style_heading(group.title), group.summary]
        lines += ["", *format_findings(group.findings)]
    lines += [f"not drawn: {reason}" for reason in report.skipped_plots]
    return [*lines, "", f"report: {relative_path(report.html_path)}"]


def _print_dry_run(study: Study, workers: int | None, *, as_json: bool) -> int:
    """Print the trials and their total time, estimated from a few real steps on each text."""
    import json

    from neural.workflows.training_time import estimate_parallel_time

    worker_count = workers or count_cores()
    if not as_json:
        click.echo(
            f"{study.name}: {format_count(study.trials, 'trial')} of {study.experiment.name}, "
            f"{worker_count} at the same time"
        )
    times = _estimate_times(study, worker_count, show=not as_json)
    total = estimate_parallel_time(
        [times[str(trial.point["data"])] for trial in study.trials], worker_count
    )
    if as_json:
        names = [trial.name for trial in study.trials]
        data = {"trials": names, "workers": worker_count, "seconds": times, "total_seconds": total}
        click.echo(json.dumps({"name": study.name, **data}))
        return 0
    click.echo(
        f"about {format_duration(total)} in all, if the machine does nothing else; "
        "nothing was written (--dry-run)"
    )
    return 0


def _print_plan(study: Study, workers: int | None, *, as_json: bool) -> int:
    """Print a table with a row per number of seeds: training time and detectable effects."""
    import json

    from neural.stats.correlation import MIN_SHARED_STEPS
    from neural.stats.means import MIN_SEEDS
    from neural.stats.power import TARGET_POWER, estimate_correlation_power, find_smallest_effect
    from neural.training.engine import count_steps
    from neural.workflows.training_time import estimate_parallel_time

    worker_count, seeds_in_file = workers or count_cores(), len(study.settings.seeds)
    times = _estimate_times(study, worker_count)
    snapshots = min(count_steps(task) // study.settings.every for task in study.tasks.values())
    plans: list[dict[str, float | int | None]] = []
    rows = [
        (
            "seeds",
            "time",
            "a mean differs from 0 if it is",
            *(f"correlation {correlation:g}" for correlation in PLANNED_CORRELATIONS),
        )
    ]
    for seeds in sorted({seeds_in_file, *PLANNED_SEED_COUNTS}):
        total = estimate_parallel_time(
            [seconds for seconds in times.values() for _ in range(seeds)], worker_count
        )
        effect = find_smallest_effect(seeds) if seeds >= MIN_SEEDS else None
        can_correlate = seeds >= MIN_SEEDS and snapshots >= MIN_SHARED_STEPS
        powers = [
            estimate_correlation_power(seeds, snapshots, correlation) if can_correlate else None
            for correlation in PLANNED_CORRELATIONS
        ]
        plans.append(
            {"seeds": seeds, "seconds": total, "smallest_effect": effect}
            | {
                f"power_{correlation:g}": power
                for correlation, power in zip(PLANNED_CORRELATIONS, powers, strict=True)
            }
        )
        rows.append(
            (
                f"{seeds}{' (in the file)' * (seeds == seeds_in_file)}",
                format_duration(total),
                "too few seeds to decide" if effect is None else f"{effect:.1f} SD away",
                *("–" if power is None else f"{100 * power:.0f} %" for power in powers),
            )
        )
    if as_json:
        click.echo(json.dumps({"name": study.name, "snapshots": snapshots, "plans": plans}))
        return 0
    click.echo(
        f"{study.name}: {format_count(times, 'text')}, {snapshots} snapshots, "
        f"{worker_count} trainings at the same time"
    )
    click.echo("\n".join(format_table(rows)))
    click.echo(
        f"Means: detected in {100 * TARGET_POWER:.0f} % of studies; SD is the standard deviation "
        "between seeds.\n"
        "Correlations: share of studies that find two measures related beyond the trend, if their\n"
        "changes have this correlation and are measured without noise. Without an effect, a\n"
        "verdict is wrong in at most 5 % of studies. Nothing was written."
    )
    return 0


def _estimate_times(study: Study, worker_count: int, *, show: bool = False) -> dict[str, float]:
    """Seconds of one training by name of the text, estimated from a few real steps.

    `show` prints a line per text.
    """
    from neural.workflows.training_time import estimate_training_time

    settings, times = study.settings, dict[str, float]()
    for text_name, task in study.tasks.items():
        threads = max(1, count_cores() // worker_count)
        estimate = estimate_training_time(
            task, settings.generation, settings.every, threads=threads
        )
        times[text_name] = estimate.total_seconds
        if show:
            click.echo(
                f"  {text_name}: {format_count(settings.seeds, 'seed')}, "
                f"each {format_duration(estimate.total_seconds)}: "
                f"{estimate.steps:,} steps of {format_duration(estimate.step_seconds)}, "
                f"{estimate.evaluations:,} evaluations (attention, validation, samples) "
                f"of {format_duration(estimate.evaluation_seconds)}"
            )
    return times
