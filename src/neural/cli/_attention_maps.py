"""Attention maps in a terminal: small tiles for all heads, one head in full, strongest pairs.

A map is the (queries, keys) matrix of the attention weights of one head; every row sums to 1. A
signed map (of a mechanism that declares `signed`) has negative weights, too: they have colours of
their own, and without colours the mark `-` where they outweigh the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import zip_longest

import click
import numpy as np

from neural.cli import _formatting
from neural.core.escape import shorten

COLOUR_RAMP = (16, 17, 18, 19, 20, 26, 32, 38, 44, 50, 86, 122, 158, 194, 230)
"""Colours of the 256-colour palette, from weight 0 to the largest weight of a row."""
NEGATIVE_RAMP = (16, 52, 88, 124, 160, 196, 203, 210, 217)
"""Colours from weight 0 to the largest negative weight."""
SHADES = " ·░▒▓█"
"""Characters from weight 0 to the largest weight of a row, where the output has no colours."""
MIN_LARGEST_WEIGHT = 1e-6
"""Rows whose largest weight is below it are drawn empty."""
TILE_WIDTH = 16
"""Columns of a small map; it is half as many lines high."""


def supports_colour() -> bool:
    """Whether standard output shows colours; FORCE_COLOR and NO_COLOR override the detection."""
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def pool_weights(weights: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """A (Q, K) map reduced to at most rows × columns: summed over keys, averaged over queries.

    Every row still sums to 1.
    """
    queries, keys = weights.shape
    row_of_query = np.minimum(np.arange(queries) * min(rows, queries) // queries, rows - 1)
    column_of_key = np.minimum(np.arange(keys) * min(columns, keys) // keys, columns - 1)
    sums = np.zeros((row_of_query[-1] + 1, column_of_key[-1] + 1))
    np.add.at(sums, (row_of_query[:, None], column_of_key), weights)
    return sums / np.bincount(row_of_query)[:, None]


def render_cells(cells: np.ndarray, *, cell_width: int = 1) -> list[str]:
    """Cells as text, two rows per line, on a square-root scale to the largest cell of each row.

    The scale keeps small weights visible. In colour each character is an upper half block whose
    foreground is the upper row and whose background is the lower one; without colour a character
    shows the larger of the two.
    """
    levels = _to_levels(cells)
    if not supports_colour():
        empty_row = np.zeros(levels.shape[1])
        return [
            _shade(np.where(np.abs(upper) >= np.abs(lower), upper, lower), cell_width)
            for upper, lower in zip_longest(levels[::2], levels[1::2], fillvalue=empty_row)
        ]
    lines = []
    for upper, lower in zip_longest(levels[::2], levels[1::2]):
        backgrounds = [None] * len(upper) if lower is None else [_colour_index(x) for x in lower]
        lines.append(
            "".join(
                click.style("▀" * cell_width, fg=_colour_index(level), bg=background)
                for level, background in zip(upper, backgrounds, strict=True)
            )
        )
    return lines


def render_tiles(maps: Sequence[np.ndarray], titles: Sequence[str]) -> list[str]:
    """Small maps side by side, as many in a row as fit into the terminal."""
    tiles_per_row = max(1, (_formatting.terminal_width() - 2) // (TILE_WIDTH + 2))
    lines = []
    for start in range(0, len(maps), tiles_per_row):
        row = slice(start, start + tiles_per_row)
        tiles = [
            render_cells(pool_weights(weights, TILE_WIDTH, TILE_WIDTH)) for weights in maps[row]
        ]
        padded_titles = (shorten(title, TILE_WIDTH).ljust(TILE_WIDTH) for title in titles[row])
        lines.append(("  " + "  ".join(padded_titles)).rstrip())
        for tile_lines in zip_longest(*tiles, fillvalue=""):
            padded_lines = [
                tile_line + " " * (TILE_WIDTH - len(click.unstyle(tile_line)))
                for tile_line in tile_lines
            ]
            lines.append(("  " + "  ".join(padded_lines)).rstrip())
        lines.append("")
    return lines[:-1]


def render_map(
    weights: np.ndarray, queries: Sequence[str] | None, keys: Sequence[str] | None
) -> list[str]:
    """The (Q, K) map of one head: a column per key, as many as fit; two queries per line in colour.

    `queries` and `keys` are the labels of the axes.
    """
    query_count, key_count = weights.shape
    margin = 2 + len(str(query_count - 1)) + 1  # indent, index of the query, space
    max_width = _formatting.terminal_width() - margin - 14  # 14 for the label on the right
    columns = min(key_count, max_width)
    cell_width = 2 if columns * 2 <= max_width else 1
    lines = []
    if keys is not None and columns == key_count and all(len(key) == 1 for key in keys):
        lines.append(
            " " * margin + "".join(shorten(key, 1).ljust(cell_width) for key in keys).rstrip()
        )
    cells = pool_weights(weights, query_count, columns)
    queries_per_line = 2 if supports_colour() else 1
    map_lines = (
        render_cells(cells, cell_width=cell_width)
        if queries_per_line == 2
        else [_shade(row, cell_width) for row in _to_levels(cells)]
    )
    for query, line in zip(range(0, query_count, queries_per_line), map_lines, strict=True):
        labels = queries[query : query + queries_per_line] if queries is not None else ()
        label = " ".join(shorten(text, 12) for text in labels)
        lines.append(f"{query:>{margin - 1}} {line}  {label}".rstrip())
    return lines


def format_strongest_pairs(
    weights: np.ndarray, queries: Sequence[str] | None, keys: Sequence[str] | None, limit: int
) -> list[str]:
    """The largest weight of each query by magnitude, as text; at most `limit`, largest first.

    `queries` and `keys` are the labels of the positions.

    Queries that can attend to a single key are left out: their weight is 1 by definition.
    """
    has_choice = (weights != 0).sum(axis=1) > 1
    strongest_keys = np.abs(weights).argmax(axis=1)
    pairs = [
        (float(row[key]), query, int(key))
        for query, (row, key) in enumerate(zip(weights, strongest_keys, strict=True))
        if has_choice[query]
    ]
    is_square = weights.shape[0] == weights.shape[1]
    lines = []
    ordered_pairs = sorted(pairs, key=lambda pair: (abs(pair[0]), *pair[1:]), reverse=True)
    for weight, query, key in ordered_pairs[:limit]:
        target = "itself" if is_square and key == query else _position_label(key, keys)
        lines.append(f"{_position_label(query, queries)} attends to {target} ({weight:.2f})")
    return lines


def _to_levels(cells: np.ndarray) -> np.ndarray:
    """Square roots of the magnitudes as shares of the row's largest, with the sign."""
    cells = np.nan_to_num(cells)
    cells = cells / np.maximum(np.abs(cells).max(axis=1, keepdims=True), MIN_LARGEST_WEIGHT)
    return np.sign(cells) * np.sqrt(np.abs(cells))


def _shade(levels: np.ndarray, cell_width: int) -> str:
    """One line without colours; levels go from −1 to 1, those below 0 that are not small are `-`."""
    indices = np.rint(np.abs(levels) * (len(SHADES) - 1)).astype(int)
    return "".join(
        ("-" if level < 0 and index else SHADES[index]) * cell_width
        for level, index in zip(levels, indices, strict=True)
    )


def _position_label(position: int, labels: Sequence[str] | None) -> str:
    if labels is None:
        return str(position)
    return f"{position} “{shorten(labels[position], 24)}”"


def _colour_index(level: float) -> int:
    """Colour of the 256-colour palette for a level from −1 to 1."""
    ramp = NEGATIVE_RAMP if level < 0 else COLOUR_RAMP
    return ramp[round(abs(float(level)) * (len(ramp) - 1))]
