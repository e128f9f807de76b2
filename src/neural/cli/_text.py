"""Numbers as text: tables, curves and times that fit a terminal of 80 columns."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from neural.core.visible import visible, visible_colours

if TYPE_CHECKING:
    from neural.views.seeds import Estimate

COLOURS = {"running": "cyan", "finished": "green", "failed": "red", "lost": "red", "broken": "red", "stopped": "yellow"}
BLOCKS = "▁▂▃▄▅▆▇█"
WIDEST = 110


def width() -> int:
    """Columns to use: the terminal's, or 80 where there is none."""
    return min(shutil.get_terminal_size((80, 24)).columns, WIDEST) if sys.stdout.isatty() else 80


def near(path: Path) -> Path:
    """As seen from here, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def state(word: str) -> str:
    """A state in its colour."""
    return click.style(visible(word), fg=COLOURS.get(word))


def heading(text: str) -> str:
    """The title of a part."""
    return click.style(visible_colours(text), bold=True)


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), *, indent: str = "  ") -> list[str]:
    """Rows with their columns below each other; those in `right` end alike."""
    rows = [[visible_colours(cell.replace("\n", " ")) for cell in row] for row in rows]
    widths = [max(len(click.unstyle(cell)) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for number, (cell, wide) in enumerate(zip(row, widths, strict=True)):
            space = " " * (wide - len(click.unstyle(cell)))
            cells.append(space + cell if number in right else cell + space)
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def number(value: float | None) -> str:
    """Four digits or so; a dash for nothing."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.4g}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.2e}"


def signed(value: float) -> str:
    """A difference: two digits and its sign."""
    return f"{value:+.2g}".replace("-", "−")


def difference(estimate: Estimate, verdict: str) -> str:
    """A difference over pairs of seeds, in a cell: `worse +0.12 (+0.03 … +0.21)`."""
    if estimate.seeds < 2:
        return f"{verdict} ({estimate.seeds or 'no'} shared seed)"
    if not math.isfinite(estimate.low):
        return f"{verdict} {signed(estimate.value)} in each of {estimate.seeds} seeds"
    return f"{verdict} {signed(estimate.value)} ({signed(estimate.low)} … {signed(estimate.high)})"


def share(value: float | None) -> str:
    """Three digits: a measure of a head."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def cut(text: str, most: int) -> str:
    """The text in one line, shortened in its middle where it is too long."""
    line = visible(" ".join(text.split()))
    if len(line) <= most:
        return line
    front = (most - 1) * 2 // 3
    return f"{line[:front]}…{line[len(line) - (most - 1 - front):]}"


def age(when: float) -> str:
    """How long ago: `3 min`, `2 h`, `5 d`."""
    seconds = max(0.0, time.time() - when)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def sparkline(
    steps: np.ndarray, values: np.ndarray, *, last: int, low: float, high: float, columns: int
) -> str:
    """A curve in one line: columns are steps up to `last`, heights from `low` to `high`; blank where nothing is."""
    means = bucketed(steps, values, last=last, columns=columns)
    top = len(BLOCKS) - 1
    scaled = (means - low) / (high - low) * top if high > low else np.zeros_like(means)
    return "".join(" " if math.isnan(one) else BLOCKS[round(min(max(one, 0.0), top))] for one in scaled).rstrip()


def bucketed(steps: np.ndarray, values: np.ndarray, *, last: int, columns: int) -> np.ndarray:
    """The mean of what falls into each column; a gap between two points is bridged, beyond them is NaN."""
    kept = np.isfinite(values)
    steps, values = steps[kept], values[kept]
    at = np.clip((steps * columns // max(1, last + 1)).astype(int), 0, columns - 1)
    counts = np.bincount(at, minlength=columns)
    means = np.full(columns, np.nan)
    there = counts > 0
    means[there] = np.bincount(at, weights=values, minlength=columns)[there] / counts[there]
    if there.any():
        inside = np.arange(columns)
        inside = inside[(inside >= inside[there][0]) & (inside <= inside[there][-1])]
        means[inside] = np.interp(inside, np.flatnonzero(there), means[there])
    return means


def plot(line: tuple[np.ndarray, np.ndarray], points: Mapping[str, tuple[np.ndarray, np.ndarray]], *,
         columns: int, rows: int = 8) -> list[str]:  # fmt: skip
    """A curve as a line of dots, with the points of others on it, each by its mark. Logarithmic where it falls far."""
    drawn = [line, *points.values()]
    finite = np.concatenate([values[np.isfinite(values)] for _, values in drawn])
    if not len(finite):
        return []
    last = int(max(steps.max(initial=0) for steps, _ in drawn))
    across = 2 * columns   # a cell holds 2 × 4 dots
    coarse = bucketed(*line, last=last, columns=columns)
    there = np.flatnonzero(np.isfinite(coarse))
    means = np.interp(np.arange(across) / 2 - 0.25, there, coarse[there], right=np.nan) if len(there) else np.empty(0)
    seen = np.concatenate([means[np.isfinite(means)], *(values[np.isfinite(values)] for _, values in points.values())])
    low, high = float(seen.min()), float(seen.max())
    steep = low > 0 and high / low > 20
    scale = np.log if steep else np.asarray
    bottom, reach = float(scale(low)), float(scale(high)) - float(scale(low)) or 1.0
    dots = np.zeros((4 * rows, across), dtype=bool)
    heights = (scale(means) - bottom) / reach
    levels = [None if math.isnan(one) else round((1 - min(max(one, 0), 1)) * (4 * rows - 1)) for one in heights]
    before: int | None = None
    for column, level in enumerate(levels):
        if level is not None:   # down or up from the one before, without a gap
            ends = level, level if before is None else before
            dots[min(ends) : max(ends) + 1, column] = True
        before = level
    cells = [[_braille(dots[4 * y : 4 * y + 4, 2 * x : 2 * x + 2]) for x in range(columns)] for y in range(rows)]
    for mark, (steps, values) in points.items():
        for step, value in zip(steps, values, strict=True):
            if math.isfinite(value):
                height = (float(scale(value)) - bottom) / reach
                cells[round((1 - height) * (rows - 1))][min(int(step) * columns // (last + 1), columns - 1)] = mark
    middle = math.exp(bottom + reach / 2) if steep else bottom + reach / 2
    labels = {0: number(high), rows // 2: number(middle), rows - 1: number(low)}
    margin = max(map(len, labels.values()))
    lines = [f"  {labels.get(y, ''):>{margin}} ┤{''.join(row).rstrip(chr(0x2800))}" for y, row in enumerate(cells)]
    end = f"{last:,}" + ("  (logarithmic)" if steep else "")
    return [*lines, f"  {'':>{margin}} └{'─' * columns}", f"  {'':>{margin}}  0{end:>{columns - 1}}"]


def _braille(dots: np.ndarray) -> str:
    bits = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
    return chr(0x2800 + sum(bits[y][x] for y in range(4) for x in range(2) if dots[y, x]))
