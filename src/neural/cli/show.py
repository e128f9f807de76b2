"""`neural show`: one run: progress, settings, curves, phases, attention, events.

`data` is the dict of `neural.findings.run_summary.describe_run`. A measure
(neural.capture.measures) is a number per attention head, such as its entropy; it is bounded if its
range is finite. A phase (neural.findings.phases) is a range of steps in which the validation score
changes in one way: rapid, steady, plateau, dip, recovery. A sweep is a folder of runs, its trials.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import RUN
from neural.cli._options import json_option, runs_option
from neural.core.escape import escape_controls_keep_colours, shorten
from neural.core.table import format_age

if TYPE_CHECKING:
    from neural.runs.run import Run

MAX_EVENTS = 10
"""Newest events that are printed."""


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option(
    "--measure",
    metavar="NAME",
    help="Measure to show head by head; relative entropy by default.",
)
@runs_option()
@json_option()
def command(run: str | None, measure: str | None, root: Path, as_json: bool) -> None:
    """Show a run, by its path or a part of its name; the newest by default.

    \b
    $ neural show
    $ neural show Digits --measure entropy
    $ neural show runs/2026-11-16_01-38-55_Digits --json | jq .best

    Also works during training. For the folder of a sweep its trials are shown.
    """
    from neural.cli._run_selection import select_run_or_sweep
    from neural.findings.run_summary import describe_run
    from neural.runs.run import Run
    from neural.workflows.sweep import TRIALS_FILE, open_sweep

    path = select_run_or_sweep(run, root)
    if (path / TRIALS_FILE).exists():
        from neural.workflows.sweep_result import SweepResult

        _formatting.print_result(SweepResult(open_sweep(path)), as_json=as_json)
        return
    with Run.open(path) as opened_run:
        data = describe_run(opened_run)
        _check_measure(measure, data)
        page = (
            json.dumps(data, indent=2)
            if as_json
            else "\n".join(_format_run(opened_run, data, measure))
        )
        click.echo(escape_controls_keep_colours(page))


def _check_measure(measure: str | None, data: dict[str, Any]) -> None:
    """Raise RunError if the run has no such measure."""
    from neural.core.names import suggest_name
    from neural.runs.errors import RunError

    measures = data["attention"]["measures"] if data["attention"] else {}
    if measure is not None and measure not in measures:
        suggestion = suggest_name(measure, measures) or f"it has {', '.join(measures) or 'none'}"
        raise RunError(f"{data['name']} has no measure `{measure}`; {suggestion}")


def _format_run(run: Run, data: dict[str, Any], measure: str | None) -> list[str]:
    lines = [
        f"{_formatting.style_heading(data['name'])}  {_formatting.style_state(data['state'])}",
        *_format_header(data),
    ]
    if data["settings"]:
        rows = [(key, shorten(json.dumps(value), 50)) for key, value in data["settings"].items()]
        lines += [
            "",
            _formatting.style_heading("settings that are not the default"),
            *_formatting.format_table(rows),
        ]
    lines += _format_curves(run)
    if not data["best"]:  # no metric of these selects a best checkpoint
        logged = [
            (name, _formatting.format_number(curve["values"][-1]))
            for name, curve in data["curves"].items()
            if name != "train/loss"
        ]
        lines += _formatting.format_table(logged, right_aligned=(1,)) if logged else []
    lines += _format_phases(data["phases"])
    if data["attention"]:
        from neural.cli._attention_table import format_heads, format_measures

        lines += [
            "",
            *format_measures(data["attention"]),
            "",
            *format_heads(data["attention"], measure),
        ]
    if data["events"]:
        rows = [
            (f"{event['step']:,}", event["kind"], shorten(event["text"], 54))
            for event in data["events"][-MAX_EVENTS:]
        ]
        lines += [
            "",
            _formatting.style_heading("events"),
            *_formatting.format_table(rows, right_aligned=(0,)),
        ]
    if data["checkpoints"]:
        rows = [
            (
                f"{checkpoint['step']:,}",
                f"{checkpoint['bytes'] / 1e6:.1f} MB",
                "best" if checkpoint["best"] else "",
            )
            for checkpoint in data["checkpoints"]
        ]
        lines += [
            "",
            _formatting.style_heading("checkpoints"),
            *_formatting.format_table(rows, right_aligned=(0, 1)),
        ]
    return [*lines, "", *_suggest_next(data)]


def _format_header(data: dict[str, Any]) -> list[str]:
    """Progress, best scores, network, message and folder."""
    step = f"{data['step']:,}" + (f" of {data['steps']:,}" if data["steps"] else "")
    rows = [("step", f"{step}, {format_age(data['time'])} ago")]
    if data["best"]:
        scores = _formatting.format_scores(data["best"]["scores"])
        rows.append(("best", f"{scores}  (step {data['best']['step']:,})"))
    network = data["network"]
    if network.get("name"):
        rows.append(
            (
                "network",
                f"{network['name']}: {network['input_shape']} → {network['output_shape']}"
                + (f", {network['parameters']:,} parameters" if network["parameters"] else ""),
            )
        )
    elif network["parameters"]:
        rows.append(("network", f"{network['parameters']:,} parameters"))
    if data["message"]:
        rows.append(("message", data["message"]))
    rows.append(("folder", str(_formatting.relative_path(Path(data["path"])))))
    return _formatting.format_table(rows)


def _format_curves(run: Run) -> list[str]:
    """The training loss as a line, the validation loss as points on it."""
    names = run.scalar_names()
    if "train/loss" not in names:
        return []
    points = {"o": run.scalars("valid/loss")} if "valid/loss" in names else {}
    plot = _formatting.draw_plot(
        run.scalars("train/loss"), points, columns=min(_formatting.terminal_width() - 16, 70)
    )
    return [
        "",
        _formatting.style_heading("loss") + (", o validation" if points else ""),
        *plot,
    ]


def _format_phases(phases: list[dict[str, Any]]) -> list[str]:
    """A line per phase: name, steps, epochs and change of the score."""
    if not phases:
        return []
    rows = []
    for phase in phases:
        steps, epochs = (
            "–".join(dict.fromkeys(f"{end:,g}" for end in phase[key] or ()))
            for key in ("steps", "epochs")
        )
        sign = "+" if phase["change"] > 0 else ""
        change = f"{sign}{_formatting.format_number(phase['change'])}"
        rows.append(
            (
                phase["name"],
                f"steps {steps}",
                f"epochs {epochs}" if epochs else "",
                change if phase["name"] != "best" else "",
            )
        )
    return [
        "",
        _formatting.style_heading(f"phases of {phases[0]['score']}"),
        *_formatting.format_table(rows, right_aligned=(3,)),
    ]


def _suggest_next(data: dict[str, Any]) -> list[str]:
    """Commands to run next."""
    path = _formatting.path_argument(Path(data["path"]))
    if data["state"] in ("lost", "stopped", "failed"):
        return [f"resume with: neural train --resume {path}"]
    if data["state"] == "running":
        return [f"show again: neural show {path}"]
    return [f"compare with another: neural compare {path} RUN"]
