"""`neural dynamics FILE`: a sweep over paradigms, then the table, the verdicts and where the pictures are."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neural.cli import _text
from neural.cli._text import near

if TYPE_CHECKING:
    from neural.sweep import Sweep
    from neural.views.focus_claims import Verdict
    from neural.views.focus_results import Groups

COLOURS = {"yes": "green", "no": "red"}


def compare(what: str, *, workers: int | None, runs: Path, as_json: bool) -> None:
    """Train what a file asks for, or go on with the folder of a comparison, and say what came out."""
    from neural import dynamics
    from neural.cli._live import asked_to_stop, conducted, many
    from neural.training.runners.forked import Forked

    sweep = _sweep(Path(what), runs)
    click.echo(f"comparison {near(sweep.path)}, {many(sweep.rows, 'trial')}", err=True)
    code = 0
    if sweep.unfinished:
        with asked_to_stop(), Forked(workers, also=("neural.tasks.focus",)) as ready:
            code = conducted(sweep, ready)
    if code == 130:
        click.echo(f"go on with: neural dynamics {near(sweep.path)}", err=True)
        sys.exit(code)
    groups, verdicts, files = dynamics.compared(sweep)
    if as_json:
        data = {"folder": str(sweep.path), **dynamics.as_json(groups, verdicts), "files": [str(one) for one in files]}
        click.echo(json.dumps(data))
    else:
        failed = [f"failed: {row.trial.name}: {row.reason}" for row in sweep.unfinished]
        wrong = [*_warnings(groups), *failed]
        rule = textwrap.wrap(dynamics.correction(verdicts), _text.width())
        warned = [*wrong, ""] if wrong else []
        table = _table(dynamics.table(groups))
        page = [*table, "", *_verdicts(verdicts), "", *rule, "", *warned, f"report: {near(files[0])}"]
        click.echo("\n".join(page))
    sys.exit(code)


def _sweep(path: Path, runs: Path) -> Sweep:
    """A new one, or the one in a folder."""
    from neural import dynamics
    from neural.cli._kinds import expect
    from neural.sweep import created, opened
    from neural.trials import read_sweep

    if path.is_dir():
        old = opened(path)
        old.refresh()
        return old
    expect(str(path), "sweep")
    settings, experiment, trials = read_sweep(path)
    dynamics.check(experiment, settings.grid)
    return created(runs, settings.name or path.stem, settings, experiment, trials)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = _text.table(rows, right=range(1, len(rows[0])), indent="")
    lines = [_text.heading(head)]
    for at, (line, row) in enumerate(zip(body, rows[1:], strict=True)):
        lines += [""] if at and row[1] != rows[at][1] else []
        lines.append(line)
    return lines


def _warnings(groups: Groups) -> list[str]:
    from neural.views.focus_warnings import warnings

    lines = [textwrap.wrap(str(one), _text.width(), subsequent_indent=" " * 8) for one in warnings(groups)]
    return [line for one in lines for line in one]


def _verdicts(verdicts: Sequence[Verdict]) -> list[str]:
    """Claim by claim, each m with its number and what it rests on."""
    from neural.views.significance import p_text

    lines: list[str] = []
    last = ""
    for one in verdicts:
        lines += textwrap.wrap(one.claim, _text.width()) if one.claim != last else []
        last = one.claim
        said = click.style(f"{one.supported:<9}", fg=COLOURS.get(one.supported))
        p = "" if math.isnan(one.p) else f"; p {p_text(one.p)}"
        start = f"  m = {one.segments:<4} {one.supported:<9}  "
        text = f"{one.evidence}{p}  ({one.what})"
        first, *rest = textwrap.wrap(text, _text.width() - len(start)) or [""]
        lines += [f"  m = {one.segments:<4} {said}  {first}"]
        lines += [f"{'':{len(start)}}{line}" for line in rest]
    return lines
