"""`neural runs`: what was trained, and how far it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(root: Path, as_json: bool) -> None:
    """List runs, the newest last: state, steps, best score, age.

    \b
    $ neural runs
    $ neural runs --json | jq '.[] | select(.state == "failed") | .name'

    `lost` is a run whose process is gone without a word; `neural train --resume RUN` goes on with it.
    """
    from neural.cli._mistakes import Refused
    from neural.digest import runs_in

    if not root.is_dir() and root != Path("runs"):
        raise Refused(f"there is no folder {root}")
    try:
        found = [_line(path) for path in (runs_in(root) if root.is_dir() else [])]
    except OSError as problem:
        raise Refused(f"{root} cannot be read: {(problem.strerror or str(problem)).lower()}") from None
    if as_json:
        click.echo(json.dumps(found, indent=2))
    elif found:
        click.echo("\n".join(_table(found)))
    else:
        click.echo(f"no runs in {root} yet; `neural train` makes one")


def _line(path: Path) -> dict[str, Any]:
    """What there is to say about a folder, whatever is in it."""
    from neural.digest import brief
    from neural.sweep import TRIALS, opened
    from neural.tracking.run import Run

    try:
        if (path / TRIALS).exists():
            return {"name": path.name, "path": str(path.absolute()), "kind": "sweep", **opened(path).counts()}
        with Run.open(path) as run:
            return {**brief(run), "kind": "run"}
    except Exception as wrong:   # anything may be in a folder, and the others are to be seen
        return {"name": path.name, "path": str(path.absolute()), "kind": "broken", "state": "broken",
                "message": str(wrong)}  # fmt: skip


def _table(found: list[dict[str, Any]]) -> list[str]:
    from neural.cli import _text
    from neural.core.visible import visible

    rows, remarks = [("run", "state", "step", "best", "age")], []
    for one in found:
        name = _text.cut(one["name"], 40)
        if one["kind"] == "sweep":
            rows.append((name, _text.state(one["state"]), f"{one['finished']}/{one['trials']} trials", "",
                         _text.age(one["time"])))  # fmt: skip
            continue
        if one["kind"] == "broken":
            rows.append((name, _text.state("broken"), "", "", ""))
            remarks.append(visible(one["message"]))
            continue
        best = one["best"]
        score = f"{best['name'].removeprefix('valid/')} {_text.number(best['score'])}" if best else "–"
        steps = f"{one['step']:,}" + (f"/{one['steps']:,}" if one["steps"] else "")
        rows.append((name, _text.state(one["state"]), steps, score, _text.age(one["time"] or one["started"])))
    lines = _text.table(rows, right=(2, 4), indent="")
    return [_text.heading(lines[0]), *lines[1:], *(f"broken: {remark}" for remark in remarks)]
