"""`neural runs`: list the runs of a folder and their progress.

A run is the folder of one training; a sweep is a folder of runs, its trials, and their results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from neural.cli._options import json_option, runs_option
from neural.core.escape import shorten

MAX_NAME_WIDTH = 40
"""Characters of a name in the table."""

ALIASES = ("list", "ls")
"""Other names of this command."""


@click.command()
@runs_option()
@json_option()
def command(root: Path, as_json: bool) -> None:
    """List runs, newest last: state, steps, best score, age.

    \b
    $ neural runs
    $ neural runs --json | jq '.[] | select(.state == "failed") | .name'

    `lost`: the process of the run ended without saving a result; `neural train --resume RUN`
    resumes it.
    """
    from neural.cli._errors import report_errors

    with report_errors():
        from neural.workflows.runs import runs

        summaries = runs(root)
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
    elif summaries:
        click.echo("\n".join(_format_runs(summaries)))
    else:
        click.echo(f"no runs in {root} yet; `neural train` creates one")


def _format_runs(summaries: list[dict[str, Any]]) -> list[str]:
    """A line per run or sweep, then the messages of broken folders."""
    from neural.cli import _formatting
    from neural.core.escape import escape_controls

    rows, broken_messages = [("run", "state", "step", "best", "age")], []
    for summary in summaries:
        name = shorten(summary["name"], MAX_NAME_WIDTH)
        if summary["kind"] == "sweep":
            rows.append(
                (
                    name,
                    _formatting.style_state(summary["state"]),
                    f"{summary['finished']}/{summary['trials']} trials",
                    "",
                    _formatting.format_age(summary["time"]),
                )
            )
            continue
        if summary["kind"] == "broken":
            rows.append((name, _formatting.style_state("broken"), "", "", ""))
            broken_messages.append(escape_controls(summary["message"]))
            continue
        best = summary["best"]
        score = (
            f"{best['name'].removeprefix('valid/')} {_formatting.format_number(best['score'])}"
            if best
            else "–"
        )
        steps = f"{summary['step']:,}" + (f"/{summary['steps']:,}" if summary["steps"] else "")
        rows.append(
            (
                name,
                _formatting.style_state(summary["state"]),
                steps,
                score,
                _formatting.format_age(summary["time"] or summary["started"]),
            )
        )
    lines = _formatting.format_table(rows, right_aligned=(2, 4), indent="")
    return [
        _formatting.style_heading(lines[0]),
        *lines[1:],
        *(f"broken: {message}" for message in broken_messages),
    ]
