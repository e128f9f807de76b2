"""Duplicate heads: two heads of a layer with the same attention maps.

A map is the attention weights of a head, [query, key], for the first probe example: one of the
fixed validation examples whose attention is recorded. Mass is the sum of weights. A sink head has
most of its mass on the first key; a uniform head attends equally to all keys.
"""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_roles import ROLE_THRESHOLDS, format_head, load_last_maps
from neural.findings.record import Record
from neural.findings.run_loading import finite_mean

MAX_DIVERGENCE_BITS = 0.02
"""Jensen–Shannon divergence below which two heads are duplicates.

A run stores maps with 8 bits per weight; this rounding alone makes a difference of about 0.001.
"""
MIN_NON_SINK_MASS = 0.05
"""Rows (queries) with less mass outside of the first key are not compared."""
MIN_SINK_MASS = ROLE_THRESHOLDS["sink"]
"""Mean mass on the first key from which a head is a sink, which has no duplicates."""
MIN_UNIFORM_ENTROPY = 0.95
"""Entropy, relative to that of a uniform head, from which a head counts as uniform."""
MAX_QUOTED_PAIRS = 8
"""Pairs quoted in the evidence; further ones are only counted."""


class DuplicateHeads(DiagnosticCheck):
    """Reports pairs of heads of a layer whose maps diverge by less than 0.02 bits.

    The number is their share of all pairs. The maps are those of one probe example. The first key
    is ignored, and with it the rows in which a head has almost all mass there; heads that have most
    of their mass there are left out: any two of them are alike. Nor do pairs of two uniform heads
    count; the check `uniform_attention` reports these heads. Needs a training: heads that agree on
    the one input of `neural watch` may differ on another.
    """

    code: ClassVar[str] = "ATT004"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "heads of a layer are duplicates"
    unit: ClassVar[str] = "of the pairs of heads"
    advice: ClassVar[str] = (
        "fewer heads, or key and value heads that are shared (`num_kv_heads`), may do the same"
    )

    def find_symptom(self, run: Record) -> Symptom | None:
        """Compare the last stored maps of every layer, [head, query, key]."""
        step, layers = load_last_maps(run)
        duplicates, pair_count, partners = [], 0, dict[tuple[int, int], list[int]]()
        for layer, maps in enumerate(layers):
            is_uniform = [_relative_entropy(head) >= MIN_UNIFORM_ENTROPY for head in maps]
            is_real = maps.any(axis=(0, 2))  # False for queries that are padding
            is_sink = maps[:, is_real, 0].mean(axis=1) >= MIN_SINK_MASS
            for i, j in combinations(range(len(maps)), 2):
                pair_count += 1
                if is_sink[i] or is_sink[j]:
                    continue
                divergence = mean_js_divergence(*_without_sink(maps[i], maps[j]))
                if divergence < MAX_DIVERGENCE_BITS and not (is_uniform[i] and is_uniform[j]):
                    duplicates.append(
                        f"{format_head(layer, i)} and {format_head(layer, j)} "
                        f"({divergence:.3f} bits)"
                    )
                    partners.setdefault((layer, i), []).append(j)
                    partners.setdefault((layer, j), []).append(i)
        if not duplicates:
            return None
        unquoted = len(duplicates) - MAX_QUOTED_PAIRS
        more = f" and {unquoted} more" if unquoted > 0 else ""
        evidence = (
            f"at step {step:,}, probe example 0: {', '.join(duplicates[:MAX_QUOTED_PAIRS])}{more}"
        )
        marks = [
            mark_head(*head, "= " + ", ".join(f"h{other}" for other in others))
            for head, others in sorted(partners.items())
        ]
        return Symptom(
            len(duplicates) / pair_count,
            evidence,
            text=f"{len(duplicates)} of {pair_count} pairs of heads",
            figure=build_head_grid(run, marks),
        )


def _without_sink(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two maps without the first key, and without rows in which one has little mass elsewhere."""
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
    # rows that see a single key are equal in all heads, so they are ignored
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
