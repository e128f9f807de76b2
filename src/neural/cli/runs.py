"""`neural runs`: list of runs and their progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from neural.core.escape import shorten

MAX_NAME_WIDTH = 40
"""Characters of a name in the table."""


@click.command()
@click.option(
    "--runs",
    "root",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(root: Path, as_json: bool) -> None:
    """List runs, newest last: state, steps, best score, age.

    \b
    $ neural runs
    $ neural runs --json | jq '.[] | select(.state == "failed") | .name'

    `lost`: the process of the run ended without saving a result; `neural train --resume RUN`
    resumes it.
    """
    from neural.analysis.run_summary import list_runs
    from neural.cli._errors import UserError
    from neural.core.errors import describe_os_error

    if not root.is_dir() and root != Path("runs"):
        raise UserError(f"there is no folder {root}")
    try:
        summaries = [_summarize_folder(path) for path in (list_runs(root) if root.is_dir() else [])]
    except OSError as error:
        raise UserError(f"{root} cannot be read: {describe_os_error(error)}") from None
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
    elif summaries:
        click.echo("\n".join(_format_runs(summaries)))
    else:
        click.echo(f"no runs in {root} yet; `neural train` creates one")


def _summarize_folder(path: Path) -> dict[str, Any]:
    """Summary of a run or sweep; an unreadable folder has the kind "broken"."""
    from neural.analysis.run_summary import summarize_run
    from neural.runs.run import Run
    from neural.workflows.sweep import TRIALS_FILE, open_sweep

    try:
        if (path / TRIALS_FILE).exists():
            return {
                "name": path.name,
                "path": str(path.absolute()),
                "kind": "sweep",
                **open_sweep(path).count_states(),
            }
        with Run.open(path) as run:
            return {**summarize_run(run), "kind": "run"}
    except Exception as error:  # a folder can contain anything; the others are still listed
        return {
            "name": path.name,
            "path": str(path.absolute()),
            "kind": "broken",
            "state": "broken",
            "message": str(error),
        }


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
