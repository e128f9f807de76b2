"""Uniform attention: the output is the mean of all values, whatever the query.

A uniform head attends equally to all keys. The measure `relative_entropy` of a head is the entropy
of its attention weights divided by that of a uniform head: 1 is uniform.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, FigureData, Importance, Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_roles import (
    ROLE_THRESHOLDS,
    RoleScores,
    format_heads,
    load_last_maps,
)
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError, load_measure

MIN_RELATIVE_ENTROPY = ROLE_THRESHOLDS["uniform"]
"""Relative entropy from which a head counts as uniform."""
MAX_DRAWN_KEYS = 48
"""Keys of one row of weights that the picture shows."""
MIN_UNIFORM_SHARE = 0.25
"""Share of uniform heads from which there is a warning: single uniform heads are normal."""


class UniformAttention(DiagnosticCheck):
    """Reports heads whose relative entropy is at least 0.95 at the end of training.

    The number is their share of all heads. It is reported if it is at least a quarter.
    """

    code: ClassVar[str] = "ATT001"
    claim: ClassVar[str] = "attention is close to uniform"
    unit: ClassVar[str] = "of the heads"
    importance: ClassVar[Importance] = "medium"
    advice: ClassVar[str] = (
        'train the same network with `attention="uniform"`, which averages: if it scores the same, '
        "attention adds nothing here"
    )

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find heads that are uniform at the end: by their last level, as roles are assigned."""
        steps, values = load_measure(run, "relative_entropy")
        # [layer, head]; NaN where a layer has fewer heads
        last = RoleScores("uniform", steps, values).last_levels
        is_measured = np.isfinite(last)
        is_uniform = last >= MIN_RELATIVE_ENTROPY
        share = float(is_uniform.sum() / max(1, is_measured.sum()))
        if share < MIN_UNIFORM_SHARE:
            return None
        # a single snapshot has neither a start nor an end
        is_series = len(steps) > 1
        count_at_start = int((values[0] >= MIN_RELATIVE_ENTROPY).sum())
        evidence = (
            f"{is_uniform.sum()} of {is_measured.sum()} heads have a relative entropy of "
            f"{MIN_RELATIVE_ENTROPY} or more{' at the end' * is_series}: {format_heads(is_uniform)}"
            + f" ({count_at_start} heads at step {steps[0]:,})"
            * is_series
        )
        return Symptom(
            share,
            evidence,
            text=f"{is_uniform.sum()} of {is_measured.sum()} heads",
            figure=_draw_row(run, is_uniform, last),
        )


def _draw_row(run: Record, is_uniform: np.ndarray, entropy: np.ndarray) -> FigureData:
    """The weights of one query of the most uniform head; without maps, the uniform heads.

    `is_uniform` and `entropy`, the relative entropy, are [layer, head].
    """
    layer, head = map(int, np.unravel_index(np.nanargmax(entropy), entropy.shape))
    marks = [
        mark_head(i, j, "uniform", detail=f"relative entropy {entropy[i, j]:.3f}")
        for i, j in np.argwhere(is_uniform)
    ]
    grid = build_head_grid(run, marks)
    try:
        step, maps = load_last_maps(run)
    except MissingDataError:
        return grid
    if layer >= len(maps) or head >= len(maps[layer]):
        return grid
    # of the queries that see the most keys, the last; queries of padding see few
    visible = maps[layer].max(axis=0) > 0  # [query, key]
    key_counts = visible.sum(axis=1)
    query = int(np.flatnonzero(key_counts == key_counts.max())[-1])
    keys = np.flatnonzero(visible[query])
    labels = (run.metadata("probe/labels") or [None])[0] or []

    def name_position(position: int) -> str:
        return labels[position] if position < len(labels) else str(position)

    return {
        **grid,
        "kind": "rows",
        "step": int(step),
        "layer": layer,
        "head": head,
        "query": query,
        "query_label": name_position(query),
        "keys": [name_position(key) for key in keys[:MAX_DRAWN_KEYS]],
        "weights": maps[layer][head, query, keys[:MAX_DRAWN_KEYS]].round(5).tolist(),
        "key_count": len(keys),
        "relative_entropy": float(entropy[layer, head]),
    }
