"""Attention sinks: heads with most of their mass on the first key (Xiao et al., 2024).

Mass is the sum of attention weights; maps are stored weights, [head, query, key].
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.head_roles import ROLE_THRESHOLDS, RoleScores, format_heads, load_last_maps
from neural.analysis.run_loading import MissingDataError, finite_mean, load_measure
from neural.runs.run import Run


class AttentionSinks(DiagnosticCheck):
    """Share of heads with at least half of their final mass on the first key.

    Beyond the mass that a uniform head has there.
    """

    code: ClassVar[str] = "ATT002"
    claim: ClassVar[str] = "heads rest on the first key, an attention sink"
    unit: ClassVar[str] = "of the heads"
    advice: ClassVar[str] = (
        "measure spans and entropies of these heads without the first key; they say little with it"
    )

    def find_symptom(self, run: Run) -> Symptom | None:
        """By the mass on the first key; with maps also by the entropy without it."""
        role = RoleScores("sink", *load_measure(run, "sink_excess"))
        last_levels = role.last_levels
        is_sink = last_levels >= ROLE_THRESHOLDS["sink"]
        if not is_sink.any():
            return None
        first_step = min(role.find_onset_step(*head) for head in np.argwhere(is_sink).tolist())
        evidence = (
            f"{format_heads(is_sink, last_levels)}; the first of them since step {first_step:,}"
        )
        return Symptom(
            float(is_sink.sum() / np.isfinite(last_levels).sum()),
            evidence + _describe_entropy_without_sink(run, is_sink),
        )


def _describe_entropy_without_sink(run: Run, sinks: np.ndarray) -> str:
    """Text: mean entropy of the heads in `sinks` [layer, head] with and without the first key.

    In nats; empty without maps.
    """
    try:
        step, layers = load_last_maps(run)
    except MissingDataError:
        return ""
    entropies = []
    for layer, maps in enumerate(layers[: len(sinks)]):
        for head in np.flatnonzero(sinks[layer, : len(maps)]):
            rows = maps[head][2:]  # queries that see at least two other keys
            entropies.append((_mean_entropy(rows), _mean_entropy(rows[:, 1:])))
    with_sink, without_sink = (
        finite_mean(np.array(entropies), axis=0) if entropies else (np.nan, np.nan)
    )
    if not np.isfinite([with_sink, without_sink]).all():
        return ""
    return (
        f"; at step {step:,} their entropy is {with_sink:.2f} nats with it "
        f"and {without_sink:.2f} without"
    )


def _mean_entropy(rows: np.ndarray) -> float:
    """Mean entropy of rows [query, key] in nats, after scaling each to sum to 1."""
    total = rows.sum(axis=1, keepdims=True)
    weights = rows / np.where(total > 0, total, np.nan)
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(axis=1)
    return float(finite_mean(entropy))
