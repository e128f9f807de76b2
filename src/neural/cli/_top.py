"""One frame of `neural top`: how far, curves, measures, heads as cells, what happened last."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from neural.cli import _text
from neural.cli._attention import short
from neural.cli._maps import RAMP, coloured
from neural.core.names import did_you_mean
from neural.digest import best
from neural.digest import step as step_of
from neural.tracking.measure import HeadMeasure
from neural.tracking.measures import registry
from neural.tracking.run import Run
from neural.tracking.trouble import RunError

CURVES, EVENTS = 6, 3
"""Of each at most so many."""
USUAL = "relative_entropy"


def check(run: Run, measure: str | None) -> None:
    """Refuse a measure that the run has not; one that looks later may still come."""
    if measure is not None and measure not in run.measures():
        known = run.measures() or registry.names()
        way_out = did_you_mean(measure, known) or f"there are {', '.join(known)}"
        raise RunError(f"{run.name} has no measure `{measure}`; {way_out}")


def frame(run: Run, measure: str | None = None, *, lines: int | None = None) -> list[str]:
    """All of it, as lines for this terminal; in a low one of so many `lines`, fewer measures."""
    found = [*_head(run), *_curves(run)]
    layers = run.described("attention/layers") or []
    cells = _cells(run, layers, measure) if layers else []
    last, room = run.events()[-EVENTS:], _text.width() - 24
    events = [(f"{step:,}", kind, _text.cut(text, room)) for step, kind, text, _ in last]
    happened = ["", *_text.table(events, right=(0,))] if events else []
    measures = _measures(run) if layers else []
    if lines is not None:
        room = lines - len(found) - len(cells) - len(happened) - 1
        measures = measures[:room] if room > 2 else []
    return [*found, *cells, *measures, *happened]


def _head(run: Run) -> list[str]:
    status, steps = run.status, run.described("steps")
    step = step_of(run)
    said = f"step {step:,}" + (f" of {steps:,}" if steps else "")
    spent = status.time - status.started
    if status.state == "running" and step and spent > 0:
        left = f", about {_span(spent / step * (steps - step))} left" if steps else ""
        said += f", {step / spent:.1f} steps/s{left}"
    elif status.time:
        said += f", {_text.age(status.time)} ago"
    lines = [f"{_text.heading(run.name)}  {_text.state(status.state)}", f"  {said}"]
    if steps:
        room = _text.width() - 4
        full = round(room * min(1.0, step / steps))
        lines.append("  " + click.style("━" * full, fg="cyan") + "─" * (room - full))
    found = best(run)
    return [*lines, *([f"  best {found.name} {_text.number(found.score)} at step {found.step:,}"] if found else [])]


def _curves(run: Run) -> list[str]:
    names = run.names()
    first = [name for name in ("train/loss", "valid/loss") if name in names]
    shown = [*first, *(name for name in names if name.startswith(("valid/", "train/")) and name not in first)][:CURVES]
    rows = [_row(name, *run.scalars(name), "") for name in shown]
    return ["", *_text.table(rows, right=(1,))] if rows else []


def _measures(run: Run) -> list[str]:
    """The mean over heads of every measure, and how it went."""
    units = run.described("attention/measures") or {}
    rows = []
    for name in run.measures():
        steps, values = run.measure(name)
        flat = values.reshape(len(steps), -1)
        there = np.isfinite(flat)
        if there.any():
            means = np.where(there, flat, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
            rows.append(_row(name, steps, means, units.get(name, {}).get("unit", "")))
    return ["", _text.heading("attention") + ", mean over heads", *_text.table(rows, right=(1,))] if rows else []


def _row(name: str, steps: np.ndarray, values: np.ndarray, unit: str) -> tuple[str, str, str, str]:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return name.replace("_", " "), _text.number(None), unit, ""
    low, high = float(finite.min()), float(finite.max())
    columns = min(40, _text.width() - 40)
    drawn = _text.sparkline(steps, values, last=int(steps[-1]), low=low, high=high, columns=columns)
    return name.replace("_", " "), _text.number(float(finite[-1])), unit, drawn


def _cells(run: Run, layers: list[str], measure: str | None) -> list[str]:
    """A cell for every head: its colour is where the value lies between the ends of the measure, or of the look."""
    name = measure or (USUAL if USUAL in run.measures() else None)
    if name is None:
        return []
    steps, values = run.measure(name)
    last = values[-1] if values[-1].ndim == 2 else values[-1][:, None]
    low, high = _ends(name, last)
    title = f"{_text.heading(name.replace('_', ' '))}, every head at step {steps[-1]:,}"
    wide = max(4, max(len(_text.share(one)) for one in last.flat) + 1)
    across = max(1, (_text.width() - 8) // wide)
    lines = ["", title, " " * 6 + "".join(f"{'h' + str(head):>{wide}}" for head in range(min(across, last.shape[1])))]
    for number, row in enumerate(last):
        cells = "".join(_cell(value, low, high, wide) for value in row[:across])
        name = short(layers)[number] if len(row) * wide < 40 and number < len(layers) else ""
        lines.append(f"  {'L' + str(number):<4}{cells}  {name}".rstrip())
    hidden = last.shape[1] - across
    return [*lines, *([f"  {hidden} more heads to the right: a wider terminal shows them"] if hidden > 0 else [])]


def _cell(value: float, low: float, high: float, wide: int) -> str:
    if np.isnan(value):
        return " " * wide
    text = f"{_text.share(value):>{wide}}"
    if not coloured():
        return text
    level = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
    shade = RAMP[round(level * (len(RAMP) - 1))]
    return click.style(text, fg=16 if level > 0.5 else 255, bg=shade)


def _ends(name: str, last: np.ndarray) -> tuple[float, float]:
    measure: Any = registry.get(name)
    if issubclass(measure, HeadMeasure) and measure.unit == "share":
        return 0.0, 1.0
    return float(np.nanmin(last)), float(np.nanmax(last))


def _span(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
