"""Attention maps in a terminal: every head as a small picture, one head in full, its strongest pairs in words."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import zip_longest

import click
import numpy as np

from neural.cli import _text

RAMP = (16, 17, 18, 19, 20, 26, 32, 38, 44, 50, 86, 122, 158, 194, 230)
"""Of the 256 colours that every terminal has: from nothing to everything."""
SHADES = " ·░▒▓█"
"""The same where there are no colours."""
TILE = 16
"""Columns of a small picture; half as many lines."""


def coloured() -> bool:
    """Whether the terminal shows colours; NO_COLOR says no, FORCE_COLOR yes."""
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def pooled(weights: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """How much groups of queries look at groups of keys: the mean over queries of the sum over keys."""
    queries, keys = weights.shape
    row = np.minimum(np.arange(queries) * min(rows, queries) // queries, rows - 1)
    column = np.minimum(np.arange(keys) * min(columns, keys) // keys, columns - 1)
    found = np.zeros((row[-1] + 1, column[-1] + 1))
    np.add.at(found, (row[:, None], column), weights)
    return found / np.bincount(row)[:, None]


def lines_of(cells: np.ndarray, *, wide: int = 1) -> list[str]:
    """Cells from 0 to 1 as text, two rows of them in a line; on a square-root scale, so that small ones are seen."""
    level = np.sqrt(np.clip(np.nan_to_num(cells), 0, 1))
    if not coloured():
        none = np.zeros(level.shape[1])
        return [_shaded(np.maximum(*two), wide) for two in zip_longest(level[::2], level[1::2], fillvalue=none)]
    lines = []
    for upper, lower in zip_longest(level[::2], level[1::2]):
        below = [None] * len(upper) if lower is None else [_colour(one) for one in lower]
        lines.append("".join(
            click.style("▀" * wide, fg=_colour(one), bg=other) for one, other in zip(upper, below, strict=True)
        ))  # fmt: skip
    return lines


def tiles(maps: Sequence[np.ndarray], titles: Sequence[str]) -> list[str]:
    """Small pictures side by side."""
    across, lines = max(1, (_text.width() - 2) // (TILE + 2)), []
    for start in range(0, len(maps), across):
        some = slice(start, start + across)
        pictures = [lines_of(pooled(one, TILE, TILE)) for one in maps[some]]
        lines.append("  " + "  ".join(_text.cut(title, TILE).ljust(TILE) for title in titles[some]).rstrip())
        for parts in zip_longest(*pictures, fillvalue=""):
            padded = [part + " " * (TILE - len(click.unstyle(part))) for part in parts]
            lines.append(("  " + "  ".join(padded)).rstrip())
        lines.append("")
    return lines[:-1]


def in_full(weights: np.ndarray, queries: Sequence[str] | None, keys: Sequence[str] | None) -> list[str]:
    """One head: a column for every key, as far as the terminal is wide; in colours, two queries in a line."""
    count, across = weights.shape
    margin = 2 + len(str(count - 1)) + 1
    room = _text.width() - margin - 14
    columns = min(across, room)
    wide = 2 if columns * 2 <= room else 1
    lines = []
    if keys is not None and columns == across and all(len(one) == 1 for one in keys):
        lines.append(" " * margin + "".join(one.ljust(wide) for one in keys).rstrip())
    cells = pooled(weights, count, columns)
    each = 2 if coloured() else 1
    drawn = lines_of(cells, wide=wide) if each == 2 else [_shaded(row, wide) for row in np.sqrt(cells.clip(0, 1))]
    for at, line in zip(range(0, count, each), drawn, strict=True):
        said = "" if queries is None else "  " + " ".join(_text.cut(one, 12) for one in queries[at : at + each])
        lines.append(f"{at:>{margin - 1}} {line}{said}".rstrip())
    return lines


def strongest(weights: np.ndarray, queries: Sequence[str] | None, keys: Sequence[str] | None, most: int) -> list[str]:
    """The pairs with most weight, in words; queries that may see one key alone have no choice and do not count."""
    choice = (weights > 0).sum(axis=1) > 1
    best = [(float(row.max()), at, int(row.argmax())) for at, row in enumerate(weights) if choice[at]]
    square = weights.shape[0] == weights.shape[1]
    return [
        f"{_place(at, queries)} looks at {'itself' if square and to == at else _place(to, keys)} ({value:.2f})"
        for value, at, to in sorted(best, reverse=True)[:most]
    ]


def _shaded(levels: np.ndarray, wide: int) -> str:
    return "".join(SHADES[round(float(one) * (len(SHADES) - 1))] * wide for one in levels)


def _place(at: int, labels: Sequence[str] | None) -> str:
    return f"{at}" if labels is None else f"{at} “{_text.cut(labels[at], 24)}”"


def _colour(level: float) -> int:
    return RAMP[round(float(level) * (len(RAMP) - 1))]
