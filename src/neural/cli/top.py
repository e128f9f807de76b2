"""`neural top`: a live view of a run in the terminal.

A measure (neural.capture.measures) is a number per attention head at every snapshot, such as the
entropy of its weights. Scalars are curves of a run, such as `train/loss`.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import RUN, FiniteFloatRange
from neural.cli._options import runs_option
from neural.core.escape import shorten
from neural.core.table import format_age

if TYPE_CHECKING:
    import numpy as np

    from neural.runs.run import Run

MAX_CURVES = 6
"""Number of training and validation curves, the losses included."""
MAX_EVENTS = 3
"""Number of newest events, such as warnings."""
DEFAULT_MEASURE = "relative_entropy"
MAX_SPARKLINE_WIDTH = 40


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option(
    "--measure", metavar="NAME", help="Measure shown for each head; relative_entropy by default."
)
@click.option(
    "--every",
    type=FiniteFloatRange(0.2),
    default=2.0,
    show_default=True,
    help="Seconds between two frames.",
)
@click.option("--once", is_flag=True, help="Print one frame and exit, as without a terminal.")
@runs_option()
def command(run: str | None, measure: str | None, every: float, once: bool, root: Path) -> None:
    """Watch a run: curves, measures and a cell per head; the newest run by default.

    \b
    $ neural top
    $ neural top Digits --measure entropy --every 5
    $ neural top --once

    Works in any terminal, also over SSH. Ends with the run or with Ctrl-C, which does not affect
    the run.
    """
    from neural.cli._run_selection import select_run
    from neural.runs.run import Run

    with Run.open(select_run(run, root)) as opened_run:
        check_measure(opened_run, measure)
        if once or not sys.stdout.isatty():
            click.echo("\n".join(render_frame(opened_run, measure)))
        else:
            _follow(opened_run, measure, every)


def _follow(run: Run, measure: str | None, interval: float) -> None:
    """Redraw the frame in place until the run ends."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def draw() -> Text:
        lines = render_frame(run, measure, max_lines=shutil.get_terminal_size().lines)
        return Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop")

    with Live(draw(), console=Console(), auto_refresh=False, vertical_overflow="crop") as live:
        while run.status.state == "running":
            time.sleep(interval)
            live.update(draw(), refresh=True)


def check_measure(run: Run, measure: str | None) -> None:
    """Raise RunError if the run has no such measure."""
    from neural.capture.measures import registry
    from neural.core.names import suggest_name
    from neural.runs.errors import RunError

    if measure is not None and measure not in run.measure_names():
        known = run.measure_names() or registry.names()
        suggestion = suggest_name(measure, known) or f"there are {', '.join(known)}"
        raise RunError(f"{run.name} has no measure `{measure}`; {suggestion}")


def render_frame(
    run: Run, measure: str | None = None, *, max_lines: int | None = None
) -> list[str]:
    """Lines of one frame. The table of measures is cut where the frame would exceed `max_lines`."""
    header_and_curves = [*_render_header(run), *_render_curves(run)]
    layers = run.metadata("attention/layers") or []
    heads = _render_heads(run, layers, measure) if layers else []
    measures = _render_measures(run) if layers else []
    events = _render_events(run)
    if max_lines is not None:
        free_lines = max_lines - len(header_and_curves) - len(heads) - len(events) - 1
        measures = measures[:free_lines] if free_lines > 2 else []
    return [*header_and_curves, *heads, *measures, *events]


def _render_events(run: Run) -> list[str]:
    max_width = _formatting.terminal_width() - 24
    rows = [
        (f"{step:,}", kind, shorten(text, max_width))
        for step, kind, text, _ in run.events()[-MAX_EVENTS:]
    ]
    return ["", *_formatting.format_table(rows, right_aligned=(0,))] if rows else []


def _render_header(run: Run) -> list[str]:
    """Name, state, progress bar and best score."""
    from neural.findings.run_summary import find_best_validation, get_current_step

    status, steps = run.status, run.metadata("steps")
    step = get_current_step(run)
    progress = f"step {step:,}" + (f" of {steps:,}" if steps else "")
    seconds = status.time - status.started
    if status.state == "running" and step and seconds > 0:
        time_left = (
            f", about {_format_duration(seconds / step * (steps - step))} left" if steps else ""
        )
        progress += f", {step / seconds:.1f} steps/s{time_left}"
    elif status.time:
        progress += f", {format_age(status.time)} ago"
    lines = [
        f"{_formatting.style_heading(run.name)}  {_formatting.style_state(status.state)}",
        f"  {progress}",
    ]
    if steps:
        width = _formatting.terminal_width() - 4
        filled = round(width * min(1.0, step / steps))
        lines.append("  " + click.style("━" * filled, fg="cyan") + "─" * (width - filled))
    if best := find_best_validation(run):
        score = _formatting.format_number(best.score)
        lines.append(f"  best {best.name} {score} at step {best.step:,}")
    return lines


def _render_curves(run: Run) -> list[str]:
    """Training and validation curves, the losses first."""
    names = run.scalar_names()
    losses = [name for name in ("train/loss", "valid/loss") if name in names]
    others = [
        name for name in names if name.startswith(("valid/", "train/")) and name not in losses
    ]
    rows = [
        _format_curve_row(name, *run.scalars(name), "") for name in [*losses, *others][:MAX_CURVES]
    ]
    return ["", *_formatting.format_table(rows, right_aligned=(1,))] if rows else []


def _render_measures(run: Run) -> list[str]:
    """The mean over heads of every measure, with its curve."""
    import numpy as np

    descriptions = run.metadata("attention/measures") or {}
    rows = []
    for name in run.measure_names():
        steps, values = run.measure(name)
        values_by_step = values.reshape(len(steps), -1)
        is_finite = np.isfinite(values_by_step)
        if is_finite.any():
            means = np.where(is_finite, values_by_step, 0).sum(axis=1) / np.maximum(
                is_finite.sum(axis=1), 1
            )
            rows.append(
                _format_curve_row(name, steps, means, descriptions.get(name, {}).get("unit", ""))
            )
    return (
        [
            "",
            _formatting.style_heading("attention") + ", mean over heads",
            *_formatting.format_table(rows, right_aligned=(1,)),
        ]
        if rows
        else []
    )


def _format_curve_row(
    name: str, steps: np.ndarray, values: np.ndarray, unit: str
) -> tuple[str, str, str, str]:
    """Name, last value, unit and sparkline of a curve."""
    import numpy as np

    finite = values[np.isfinite(values)]
    if not len(finite):
        return name.replace("_", " "), _formatting.format_number(None), unit, ""
    low, high = float(finite.min()), float(finite.max())
    sparkline = _formatting.draw_sparkline(
        steps,
        values,
        last=int(steps[-1]),
        low=low,
        high=high,
        columns=min(MAX_SPARKLINE_WIDTH, _formatting.terminal_width() - 40),
    )
    return name.replace("_", " "), _formatting.format_number(float(finite[-1])), unit, sparkline


def _render_heads(run: Run, layers: list[str], measure: str | None) -> list[str]:
    """A cell per head, coloured by its value within the range of the measure; L layers, h heads."""
    from neural.cli._attention_table import shorten_layer_names

    name = measure or (DEFAULT_MEASURE if DEFAULT_MEASURE in run.measure_names() else None)
    if name is None:
        return []
    steps, values = run.measure(name)
    # (layers, heads); a measure with one value per layer gets a single column
    last_values = values[-1] if values[-1].ndim == 2 else values[-1][:, None]
    low, high = _value_range(name, last_values)
    title = f"{_formatting.style_heading(name.replace('_', ' '))}, every head at step {steps[-1]:,}"
    cell_width = max(
        4, max(len(_formatting.format_measure(value)) for value in last_values.flat) + 1
    )
    max_heads = max(1, (_formatting.terminal_width() - 8) // cell_width)
    shown_heads = range(min(max_heads, last_values.shape[1]))
    header = "".join(f"{f'h{head}':>{cell_width}}" for head in shown_heads)
    lines = ["", title, " " * 6 + header]
    layer_names = shorten_layer_names(layers) if last_values.shape[1] * cell_width < 40 else []
    for layer, row in enumerate(last_values):
        cells = "".join(_render_cell(value, low, high, cell_width) for value in row[:max_heads])
        layer_name = layer_names[layer] if layer < len(layer_names) else ""
        lines.append(f"  {f'L{layer}':<4}{cells}  {layer_name}".rstrip())
    hidden = last_values.shape[1] - max_heads
    if hidden > 0:
        lines.append(f"  {hidden} more heads to the right: a wider terminal shows them")
    return lines


def _render_cell(value: float, low: float, high: float, width: int) -> str:
    from neural.cli._attention_maps import COLOUR_RAMP, supports_colour

    if math.isnan(value):
        return " " * width
    text = f"{_formatting.format_measure(value):>{width}}"
    if not supports_colour():
        return text
    level = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
    background = COLOUR_RAMP[round(level * (len(COLOUR_RAMP) - 1))]
    return click.style(text, fg=16 if level > 0.5 else 255, bg=background)


def _value_range(name: str, last_values: np.ndarray) -> tuple[float, float]:
    """0 to 1 for measures with the unit "share", else the range of the shown values."""
    import numpy as np

    from neural.capture.measure import HeadMeasure
    from neural.capture.measures import registry

    measure_class: Any = registry.get(name)
    if issubclass(measure_class, HeadMeasure) and measure_class.unit == "share":
        return 0.0, 1.0
    return float(np.nanmin(last_values)), float(np.nanmax(last_values))


def _format_duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
