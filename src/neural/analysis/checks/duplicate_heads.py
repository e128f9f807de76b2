"""Duplicate heads: two heads of a layer with the same attention maps."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.head_roles import format_head, load_last_maps
from neural.analysis.run_loading import finite_mean
from neural.runs.run import Run

MAX_DIVERGENCE_BITS = 0.02
"""Jensen–Shannon divergence of duplicates; equal maps rounded to 8 bits have about 0.001."""
MIN_NON_SINK_MASS = 0.05
"""Smallest mass (sum of weights) of a row outside of the first key, where a sink may be."""
MIN_UNIFORM_ENTROPY = 0.95
"""Entropy relative to that of a uniform head; `uniform_attention` reports heads above it."""


class DuplicateHeads(DiagnosticCheck):
    """Share of the pairs of heads of a layer that diverge by less than 0.02 bits.

    On the first probe example, without the first key, on rows where both heads have mass elsewhere:
    two sink heads are equal on all other rows. Pairs of heads close to uniform do not count.
    """

    code: ClassVar[str] = "ATT004"
    claim: ClassVar[str] = "heads of a layer are duplicates"
    unit: ClassVar[str] = "of the pairs"
    advice: ClassVar[str] = (
        "fewer heads, or key and value heads that are shared (`num_kv_heads`), may do the same"
    )

    def find_symptom(self, run: Run) -> Symptom | None:
        """By the last stored maps (attention weights [head, query, key]) of every layer."""
        step, layers = load_last_maps(run)
        duplicates, pair_count = [], 0
        for layer, maps in enumerate(layers):
            is_uniform = [_relative_entropy(head) >= MIN_UNIFORM_ENTROPY for head in maps]
            for i, j in combinations(range(len(maps)), 2):
                pair_count += 1
                divergence = mean_js_divergence(*_without_sink(maps[i], maps[j]))
                if divergence < MAX_DIVERGENCE_BITS and not (is_uniform[i] and is_uniform[j]):
                    duplicates.append(f"{format_head(layer, i)} and h{j} ({divergence:.3f} bits)")
        if not duplicates:
            return None
        more = f" and {len(duplicates) - 8} more" if len(duplicates) > 8 else ""
        evidence = f"at step {step:,}: {', '.join(duplicates[:8])}{more}"
        return Symptom(len(duplicates) / pair_count, evidence)


def _without_sink(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both maps without the first key, on the rows where both have enough mass elsewhere."""
    first, second = first[:, 1:], second[:, 1:]
    rows = np.minimum(first.sum(axis=1), second.sum(axis=1)) >= MIN_NON_SINK_MASS
    return first[rows], second[rows]


def mean_js_divergence(first_map: np.ndarray, second_map: np.ndarray) -> float:
    """Mean Jensen–Shannon divergence of the rows of two maps, in bits: 0 equal, 1 disjoint."""
    first, second = _normalize_rows(first_map), _normalize_rows(second_map)
    middle = (first + second) / 2

    def kl_from_middle(rows: np.ndarray) -> np.ndarray:
        ratio = np.where(rows > 0, rows / np.where(middle > 0, middle, 1), 1)
        return (rows * np.log2(ratio)).sum(axis=1)

    divergence = (kl_from_middle(first) + kl_from_middle(second)) / 2
    # rows that see one key are equal in all heads
    has_choice = ((first_map + second_map) > 0).sum(axis=1) > 1
    return float(finite_mean(np.where(has_choice, divergence, np.nan)))


def _normalize_rows(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def _relative_entropy(weights: np.ndarray) -> float:
    """Entropy over that of a uniform head, averaged over rows that see more than one key."""
    rows, keys = _normalize_rows(weights), (weights > 0).sum(axis=1)
    entropy = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=1)
    return float(finite_mean(np.where(keys > 1, entropy / np.log(np.maximum(keys, 2)), np.nan)))
