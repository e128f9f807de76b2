"""Heads of a layer that look at the same things: one of them would do."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.heads import head_name, last_maps
from neural.views.reading import mean

ALIKE = 0.02
"""Jensen–Shannon divergence in bits; maps are kept in 8 bits, which makes about 0.001 of equal ones."""
MIN_MASS = 0.05
"""Of a row, outside the first key."""
FLAT = 0.95
"""Of uniform: that two heads average is told elsewhere."""


class DuplicateHeads(Diagnosis):
    """Share of the pairs of heads in a layer that diverge by less than 0.02 bits, on the first example of the probe.

    Without the first key, and on rows where both heads look at anything else: two heads that rest on it are alike there
    whatever they do otherwise. Pairs in which both are close to uniform do not count: they are alike because they do
    not look at anything.
    """

    code: ClassVar[str] = "ATT004"
    claim: ClassVar[str] = "heads of a layer are duplicates"
    unit: ClassVar[str] = "of the pairs"
    advice: ClassVar[str] = "fewer heads, or key and value heads that are shared (`num_kv_heads`), may do the same"

    def symptom(self, run: Run) -> Symptom | None:
        """By the newest maps."""
        step, layers = last_maps(run)
        found, pairs = [], 0
        for number, maps in enumerate(layers):
            flat = [_flatness(one) >= FLAT for one in maps]
            for one, other in combinations(range(len(maps)), 2):
                pairs += 1
                apart = divergence(*_without_sink(maps[one], maps[other]))
                if apart < ALIKE and not (flat[one] and flat[other]):
                    found.append(f"{head_name(number, one)} and h{other} ({apart:.3f} bits)")
        if not found:
            return None
        more = f" and {len(found) - 8} more" if len(found) > 8 else ""
        return Symptom(len(found) / pairs, f"at step {step:,}: {', '.join(found[:8])}{more}")


def _without_sink(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both maps without their first key, on the rows where each has a twentieth of its mass elsewhere."""
    rest = [maps[:, 1:] for maps in (first, second)]
    rows = np.minimum(*(maps.sum(axis=1) for maps in rest)) >= MIN_MASS
    return rest[0][rows], rest[1][rows]


def divergence(one: np.ndarray, other: np.ndarray) -> float:
    """Mean Jensen–Shannon divergence of two maps row by row, bits: 0 alike, 1 no key in common."""
    first, second = _rows(one), _rows(other)
    middle = (first + second) / 2

    def from_middle(rows: np.ndarray) -> np.ndarray:
        ratio = np.where(rows > 0, rows / np.where(middle > 0, middle, 1), 1)
        return (rows * np.log2(ratio)).sum(axis=1)

    each = (from_middle(first) + from_middle(second)) / 2
    choice = ((one + other) > 0).sum(axis=1) > 1   # a row that sees one key is the same in all heads
    return float(mean(np.where(choice, each, np.nan)))


def _rows(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def _flatness(weights: np.ndarray) -> float:
    """Entropy over that of a uniform head, mean over rows with a choice."""
    rows, keys = _rows(weights), (weights > 0).sum(axis=1)
    entropy = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=1)
    return float(mean(np.where(keys > 1, entropy / np.log(np.maximum(keys, 2)), np.nan)))
