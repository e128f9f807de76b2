"""Attention of a run as tables: all measures, and one measure head by head.

`attention` is the entry of that name in `neural.findings.run_summary.describe_run`. A measure is a
number per head, (layers, heads), or per layer, such as the entropy of the weights; a bounded
measure has a finite range. A snapshot is the attention captured at one training step. `L1 h0` is
head 0 of the second layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neural.cli import _formatting
from neural.core.escape import shorten

CELL_WIDTH = len("12.34→12.34")
"""Characters of a cell with the value at the first snapshot and at the last."""
MAX_LAYER_NAME_WIDTH = 26
DEFAULT_MEASURE = "relative_entropy"
"""Shown head by head: from 0, one key, to 1, all keys alike."""


def format_measures(attention: dict[str, Any]) -> list[str]:
    """A line per measure: mean over heads at the first and last snapshot, and its extreme heads."""
    rows = [("", "first", "last", "lowest", "", "highest", "")]
    for name, measure in attention["measures"].items():
        first, last = _to_array(measure["first"]), _to_array(measure["last"])
        if np.isnan(last).all():
            continue
        lowest, highest = int(np.nanargmin(last)), int(np.nanargmax(last))
        unit = f" ({measure['unit']})" if measure["unit"] else ""
        rows.append(
            (
                name.replace("_", " ") + unit,
                _formatting.format_measure(_nan_mean(first)),
                _formatting.format_measure(_nan_mean(last)),
                _formatting.format_measure(last.flat[lowest]),
                _head_label(last, lowest),
                _formatting.format_measure(last.flat[highest]),
                _head_label(last, highest),
            )
        )
    steps = f"mean over heads at step {attention['first_step']:,} and {attention['last_step']:,}"
    return [
        f"{_formatting.style_heading('attention')}, {steps}",
        *_formatting.format_table(rows, right_aligned=(1, 2, 3, 5)),
    ]


def format_heads(attention: dict[str, Any], measure: str | None) -> list[str]:
    """One measure per layer and head: first → last snapshot; only the last if space is short.

    Without a name, the relative entropy is shown, or else the first bounded measure with a value
    per head.
    """
    per_head = {
        name: summary
        for name, summary in attention["measures"].items()
        if _to_array(summary["last"]).ndim == 2
    }
    bounded = [name for name, summary in per_head.items() if summary["bounded"]]
    default = [DEFAULT_MEASURE] if DEFAULT_MEASURE in per_head else [*bounded, *per_head]
    measure = measure or next(iter(default), None)
    if measure is None:
        return []
    summary = attention["measures"][measure]
    first, last = (
        values if values.ndim == 2 else values[:, None]
        for values in (_to_array(summary["first"]), _to_array(summary["last"]))
    )
    layer_names = [
        f"L{index} {name}" for index, name in enumerate(shorten_layer_names(attention["layers"]))
    ]
    head_count, width = last.shape[1], _formatting.terminal_width() - 2
    show_first = max(map(len, layer_names)) + head_count * (CELL_WIDTH + 2) <= width
    if not show_first:
        layer_names = [name.partition(" ")[0] for name in layer_names]
    title = _formatting.style_heading(measure.replace("_", " ")) + (
        f", in {summary['unit']}" if summary["unit"] else ""
    )
    lines = [title + (", first snapshot → last" if show_first else ", last snapshot")]
    cells = [len(_format_cell(value, value, show_first=False)) for value in last.flat]
    cell_width = 2 + max(len(f"h{head_count - 1}"), *cells)
    heads_per_table = (
        head_count if show_first else max(1, (width - max(map(len, layer_names))) // cell_width)
    )
    for start in range(0, head_count, heads_per_table):
        heads = range(start, min(start + heads_per_table, head_count))
        rows = [("", *(f"head {head}" if show_first else f"h{head}" for head in heads))]
        rows += [
            (
                name,
                *(
                    _format_cell(first_values[head], last_values[head], show_first=show_first)
                    for head in heads
                ),
            )
            for name, first_values, last_values in zip(layer_names, first, last, strict=True)
        ]
        lines += _formatting.format_table(rows, right_aligned=range(1, len(heads) + 1))
    return lines


def shorten_layer_names(layers: list[str]) -> list[str]:
    """Dotted names of layers without the suffix that all of them share."""
    paths = [name.split(".") for name in layers]
    while len({path[-1] for path in paths}) == 1 and all(len(path) > 1 for path in paths):
        paths = [path[:-1] for path in paths]
    return [shorten(".".join(path), MAX_LAYER_NAME_WIDTH) for path in paths]


def _format_cell(first: float, last: float, *, show_first: bool) -> str:
    if np.isnan(last):  # this layer has fewer heads than others
        return ""
    text = _formatting.format_measure(last)
    return f"{_formatting.format_measure(first)}→{text}" if show_first else text


def _head_label(values: np.ndarray, flat_index: int) -> str:
    """`L1 h0`, or `L1` for a measure with a value per layer."""
    layer, *head = np.unravel_index(flat_index, values.shape)
    return f"L{layer}" + (f" h{head[0]}" if head else "")


def _to_array(values: list[Any]) -> np.ndarray:
    return np.array(values, dtype=float)  # None becomes NaN


def _nan_mean(values: np.ndarray) -> float:
    return float("nan") if np.isnan(values).all() else float(np.nanmean(values))
