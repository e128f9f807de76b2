"""`neural study`: how attention evolves, over texts and seeds, with one report at the end."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli._arguments import PROGRAM

if TYPE_CHECKING:
    from neural.study import Study
    from neural.study_report import Report
    from neural.sweep import Sweep

RUNS = Path("runs")
SEEDS = (5, 7, 10, 15)
"""That `--plan` shows, beside those of the file."""
CORRELATIONS = (0.2, 0.3, 0.5)


@click.command()
@click.argument("file", type=PROGRAM)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key of the study: seeds=[0,1].")
@click.option("--on", "place", default="local", show_default=True, metavar="local|ray", help="Where trials run.")
@click.option("--workers", type=click.IntRange(1), help="Trials at the same time; by default one per core.")
@click.option("--runs", type=click.Path(path_type=Path), default=RUNS, show_default=True, help="Where runs go.")
@click.option("--new", is_flag=True, help="Begin anew, also where this study was begun before.")
@click.option("--dry-run", is_flag=True, help="Check, make a few steps, say how long it will take; write nothing.")
@click.option(
    "--plan",
    is_flag=True,
    help="Say how large an effect so many seeds find, and how long they take; write nothing.",
)
@click.option("--quiet", "form", flag_value="quiet", help="Say nothing but mistakes and the report's file.")
@click.option("--json", "form", flag_value="json", help="The findings as JSON, at the end.")
def command(
    file: str, changes: tuple[str, ...], place: str, workers: int | None, runs: Path, new: bool, dry_run: bool,
    plan: bool, form: str | None,
) -> None:  # fmt: skip
    """Study how attention evolves: train language models on several texts with several seeds, say what was found.

    \b
    $ neural study examples/language_model/evolution.yaml
    $ neural study examples/language_model/evolution_full.yaml --dry-run
    $ neural study examples/language_model/evolution.yaml --plan

    Started again with the same files it goes on where it was: what is finished is not trained again. Exit codes: 0 all
    trained, 1 some failed, 2 mistakes, 130 stopped.
    """
    from neural.cli._kinds import expect
    from neural.cli._mistakes import told

    expect(file, "study")
    with told():
        sys.exit(_study(file, changes, place, workers, runs, new, dry_run, plan, form or "text"))


def _study(
    file: str, changes: tuple[str, ...], place: str, workers: int | None, runs: Path, new: bool, dry_run: bool,
    plan: bool, form: str,
) -> int:  # fmt: skip
    from neural.cli._live import asked_to_stop, conducted, many
    from neural.cli._text import near
    from neural.study import begun, read_study
    from neural.training.runners import registry

    runner = registry.get(place)
    study = read_study(Path(file), changes)
    if form == "text":
        for note in study.notes:
            click.echo(f"note: {note}", err=True)
    if plan:
        return _plan(study, workers)
    if dry_run:
        return _dry_run(study, workers)
    typed = ["neural", "study", file, *(word for one in changes for word in ("--set", one))]
    typed += ["--runs", str(runs)] if runs != RUNS else []
    with asked_to_stop(), runner(workers) as ready:   # before the folder: nothing is written where this cannot be
        sweep, old = begun(study, runs, shlex.join(typed), new=new)
        if form == "text":
            again = f", {len(sweep.unfinished)} to train; --new would begin anew" if old else ""
            start = "goes on with" if old else "study"
            click.echo(f"{start} {near(sweep.path)}, {many(sweep.rows, 'trial')}{again}", err=True)
        code = conducted(sweep, ready, quiet=form != "text")
    if code == 130:
        click.echo(f"go on with: {sweep.about['command']}", err=True)
    else:
        _say(sweep, form)
    return code


def _say(sweep: Sweep, form: str) -> None:
    """The report, and what it says."""
    import json

    from neural.study_report import as_json, report

    made = report(sweep)
    if form == "json":
        click.echo(json.dumps(as_json(sweep, made), indent=2, ensure_ascii=False))
    elif made is not None and form == "quiet":
        click.echo(made.page)
    else:
        click.echo("\n".join(_text(sweep, made)))


def _text(sweep: Sweep, made: Report | None) -> list[str]:
    from neural.cli import _text, _trials
    from neural.views.findings import findings_lines

    lines = _trials.trials(sweep)
    if made is None:
        return [*lines, "", "no trial is finished: there is nothing to report"]
    for one in made.groups:
        lines += ["", _text.heading(one.title), one.sentence, "", *findings_lines(one.findings)]
    lines += [f"not drawn: {one}" for one in made.left_out]
    return [*lines, "", f"report: {_text.near(made.page)}"]


def _dry_run(study: Study, workers: int | None) -> int:
    """What would be trained, and how long it would take, from a few real steps of each text."""
    from neural.cli._live import many
    from neural.projection import together

    at_once = workers or _cores()
    click.echo(f"{study.name}: {many(study.trials, 'trial')} of {study.experiment.name}, {at_once} at the same time")
    times = _times(study, at_once, show=True)
    whole = together([times[str(trial.point["data"])] for trial in study.trials], at_once)
    click.echo(f"about {_span(whole)} in all, if the machine does nothing else; nothing was written (--dry-run)")
    return 0


def _plan(study: Study, workers: int | None) -> int:
    """A row for several numbers of seeds: how long they take, and what they find."""
    from neural.cli import _text
    from neural.cli._live import many
    from neural.projection import together
    from neural.training.engine import steps_of
    from neural.views.correlation import FEWEST_STEPS
    from neural.views.power import USUAL_POWER, power_of_correlation, smallest_effect
    from neural.views.seeds import FEWEST

    at_once, asked = workers or _cores(), len(study.settings.seeds)
    times = _times(study, at_once)
    looks = min(steps_of(task) // study.settings.every for task in study.tasks.values())
    click.echo(f"{study.name}: {many(times, 'text')}, {looks} looks, {at_once} trainings at the same time")
    rows = [("seeds", "time", "a mean is told from 0 if it is", *(f"correlation {r:g}" for r in CORRELATIONS))]
    for seeds in sorted({asked, *SEEDS}):
        whole = together([seconds for seconds in times.values() for _ in range(seeds)], at_once)
        effect = f"{smallest_effect(seeds):.1f} SD away" if seeds >= FEWEST else "nothing is decided"
        powers = ["–" for _ in CORRELATIONS]
        if seeds >= FEWEST and looks >= FEWEST_STEPS:
            powers = [f"{100 * power_of_correlation(seeds, looks, r):.0f} %" for r in CORRELATIONS]
        rows.append((f"{seeds}{' (asked)' * (seeds == asked)}", _span(whole), effect, *powers))
    click.echo("\n".join(_text.table(rows)))
    click.echo(
        f"Means: in {100 * USUAL_POWER:.0f} % of studies; SD is the standard deviation between seeds.\n"
        "Correlations: share of studies that find two measures related beyond the trend, if their changes\n"
        "truly correlate so much and are measured without noise. Where there is no effect, a verdict is\n"
        "wrong in at most 5 % of studies. Nothing was written."
    )
    return 0


def _cores() -> int:
    import os

    return os.cpu_count() or 1


def _times(study: Study, at_once: int, *, show: bool = False) -> dict[str, float]:
    """Seconds of one training on each text, from a few real steps."""
    from neural.cli._live import many
    from neural.projection import projected

    settings, times = study.settings, dict[str, float]()
    for data, task in study.tasks.items():
        projection = projected(task, settings.generation, settings.every, threads=max(1, _cores() // at_once))
        times[data] = projection.seconds
        if show:
            click.echo(
                f"  {data}: {many(settings.seeds, 'seed')}, each {_span(projection.seconds)}: "
                f"{projection.steps:,} steps of {_span(projection.step)}, {projection.looks:,} looks "
                f"(attention, validation, samples) of {_span(projection.look)}"
            )
    return times


def _span(seconds: float) -> str:
    """In the unit that fits."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds * 1000:.0f} ms"
