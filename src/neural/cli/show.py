"""`neural show`: one run, from its settings to its attention."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN
from neural.core.visible import visible_colours

if TYPE_CHECKING:
    from neural.tracking.run import Run

SCORES = 3
"""Of the best validation, in a line."""


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option("--measure", metavar="NAME", help="Which one, head by head; the one that moved most if not said.")
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(run: str | None, measure: str | None, root: Path, as_json: bool) -> None:
    """Show a run: by its path, its name or a part of it; the newest if none is named.

    \b
    $ neural show
    $ neural show Digits --measure entropy
    $ neural show runs/2026-11-16_01-38-55_Digits --json | jq .best

    Also while it is being trained. A sweep's folder shows its trials.
    """
    from neural.cli._mistakes import told

    with told():
        from neural.digest import whole
        from neural.sweep import TRIALS, find_either, opened
        from neural.tracking.run import Run

        path = find_either(run, root)
        if (path / TRIALS).exists():
            from neural.cli._trials import said

            click.echo(said(opened(path), as_json=as_json))
            return
        with Run.open(path) as found:
            data = whole(found)
            _known(measure, data)
            page = json.dumps(data, indent=2) if as_json else "\n".join(_page(found, data, measure))
            click.echo(visible_colours(page))


def _known(measure: str | None, data: dict[str, Any]) -> None:
    """Refuse a measure that the run has not."""
    from neural.core.names import did_you_mean
    from neural.tracking.trouble import RunError

    there = data["attention"]["measures"] if data["attention"] else {}
    if measure is not None and measure not in there:
        way_out = did_you_mean(measure, there) or f"it has {', '.join(there) or 'none'}"
        raise RunError(f"{data['name']} has no measure `{measure}`; {way_out}")


def _page(run: Run, data: dict[str, Any], measure: str | None) -> list[str]:
    from neural.cli import _text

    lines = [f"{_text.heading(data['name'])}  {_text.state(data['state'])}", *_top(data)]
    if data["settings"]:
        rows = [(key, _text.cut(json.dumps(value), 50)) for key, value in data["settings"].items()]
        lines += ["", _text.heading("settings that are not the default"), *_text.table(rows)]
    lines += _curves(run)
    lines += _phases(data["phases"])
    if data["attention"]:
        from neural.cli._attention import heads, overview

        lines += ["", *overview(data["attention"]), "", *heads(data["attention"], measure)]
    if data["events"]:
        rows = [(f"{one['step']:,}", one["kind"], _text.cut(one["text"], 54)) for one in data["events"][-10:]]
        lines += ["", _text.heading("events"), *_text.table(rows, right=(0,))]
    if data["checkpoints"]:
        rows = [(f"{one['step']:,}", f"{one['bytes'] / 1e6:.1f} MB", "best" if one["best"] else "")
                for one in data["checkpoints"]]  # fmt: skip
        lines += ["", _text.heading("checkpoints"), *_text.table(rows, right=(0, 1))]
    return [*lines, "", *_next(data)]


def _top(data: dict[str, Any]) -> list[str]:
    """How far, how good, what, where."""
    from neural.cli import _text

    step = f"{data['step']:,}" + (f" of {data['steps']:,}" if data["steps"] else "")
    rows = [("step", f"{step}, {_text.age(data['time'])} ago")]
    if data["best"]:
        scores = [f"{name} {_text.number(value)}" for name, value in data["best"]["scores"].items()]
        more = f"  and {len(scores) - SCORES} more" if len(scores) > SCORES else ""
        rows.append(("best", f"{'  '.join(scores[:SCORES])}{more}  (step {data['best']['step']:,})"))
    network = data["network"]
    if network.get("name"):
        rows.append(("network", f"{network['name']}: {network['takes']} → {network['gives']}"
                     + (f", {network['parameters']:,} parameters" if network["parameters"] else "")))  # fmt: skip
    elif network["parameters"]:
        rows.append(("network", f"{network['parameters']:,} parameters"))
    if data["message"]:
        rows.append(("said", data["message"]))
    return [*_text.table([*rows, ("folder", _near(data["path"]))])]


def _curves(run: Run) -> list[str]:
    """The loss as a line, that of the validations as points on it."""
    from neural.cli import _text

    names = run.names()
    if "train/loss" not in names:
        return []
    points = {"o": run.scalars("valid/loss")} if "valid/loss" in names else {}
    drawn = _text.plot(run.scalars("train/loss"), points, columns=min(_text.width() - 16, 70))
    return ["", _text.heading("loss") + (", o of the validations" if points else ""), *drawn]


def _phases(phases: list[dict[str, Any]]) -> list[str]:
    """What the validations did, stretch by stretch."""
    from neural.cli import _text

    if not phases:
        return []
    rows = []
    for one in phases:
        steps, epochs = ("–".join(dict.fromkeys(f"{at:,g}" for at in one[key] or ())) for key in ("steps", "epochs"))
        change = f"{'+' if one['change'] > 0 else ''}{_text.number(one['change'])}" if one["name"] != "best" else ""
        rows.append((one["name"], f"steps {steps}", f"epochs {epochs}" if epochs else "", change))
    return ["", _text.heading(f"phases of {phases[0]['score']}"), *_text.table(rows, right=(3,))]


def _next(data: dict[str, Any]) -> list[str]:
    """What to type now."""
    path = _near(data["path"])
    if data["state"] in ("lost", "stopped", "failed"):
        return [f"go on with: neural train --resume {path}"]
    if data["state"] == "running":
        return [f"look again:  neural show {path}"]
    return [f"set beside another: neural compare {path} RUN"]


def _near(path: str) -> str:
    """As seen from here, where it lies below."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
