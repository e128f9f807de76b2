"""A reliability diagram in numbers: bin by bin, what was said and what came true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from neural.tasks.cutting.bins import equal_width_edges, gathered
from neural.tasks.cutting.expected_error import BINS, Pairs
from neural.tasks.cutting.jackknife import Grouping, Ids, Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """The bins that hold something, from low to high: each list has a number for each of them."""

    counts: tuple[int, ...]
    said: tuple[float, ...]
    """The mean probability."""
    true: tuple[float, ...]
    """The share that came true."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """The ends of the 95 % interval of that share."""
    edges: tuple[float, ...]
    """Between all bins, also empty ones."""
    everything: tuple[int, ...]
    """Counts of all bins, also empty ones."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Reliability:
        """What `to_dict` gave, also after a file."""
        return cls(**{key: tuple(value) for key, value in saved.items()})


def reliability(
    p: np.ndarray, hits: np.ndarray, documents: np.ndarray, *, sources: Pairs = None, bins: int = BINS
) -> Reliability:
    """The bins of equal width that the plain expected error is made of.

    Intervals are Wilson's (1927): right also where nothing or everything came true. Elements of one document come true
    together, and so do those of one source, so a bin counts for as many elements as would be as uncertain if they were
    independent, at the most for those that it has.
    """
    edges = equal_width_edges(bins)

    def add(members: Ids, groups: Ids, count: int) -> np.ndarray:
        return gathered(edges, p[members], hits[members], groups, count)

    sums = Grouping(documents, int(documents.max()) + 1, sources).sums(add)
    everything = sums.documents[:, 0].sum(axis=0)
    held = everything > 0
    counts, probabilities, came = sums.documents[:, :, held].sum(axis=0)
    true = came / counts
    low, high = _wilson(true, counts, *_design_effect(sums, held, true))
    return Reliability(
        counts=_ints(counts), said=_floats(probabilities / counts), true=_floats(true), low=_floats(low),
        high=_floats(high), edges=_floats(edges), everything=_ints(everything),
    )  # fmt: skip


def _design_effect(sums: Sums, held: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every bin: how many times the variance is that of independent elements (Kish), and its degrees of freedom.

    The variance is that between documents and what shared sources add to it (Satterthwaite, 1946).
    """

    def between(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inside = (groups[:, 0] > 0).sum(axis=0)
        squares = ((groups[:, 2] - true * groups[:, 0]) ** 2).sum(axis=0)
        freedom = np.maximum(inside - 1, 1)
        return squares * inside / freedom, freedom

    cells = sums.documents[:, :, held]
    variance, freedom = between(cells)
    if sums.sources is not None and sums.parts is not None:
        of_sources, sources = between(sums.sources.sum(axis=0)[:, :, held])
        parts = sums.parts.sum(axis=0)[:, :, held]
        chance = ((parts[:, 2] - true * parts[:, 0]) ** 2).sum(axis=0)
        added = np.maximum(of_sources - chance, 0)
        total = np.maximum(variance + added, 1e-300)
        freedom = total**2 / np.maximum(variance**2 / freedom + added * of_sources / sources, 1e-300)
        variance = variance + added
    alone = cells[:, 0].sum(axis=0) * true * (1 - true)
    effect = np.divide(variance, alone, out=np.ones_like(variance), where=alone > 0)
    return np.maximum(effect, 1), np.maximum(freedom, 1)


def _wilson(
    share: np.ndarray, counts: np.ndarray, effect: np.ndarray, freedom: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the interval; as much of Student's t as of the variance is seen between clusters."""
    normal, student = -float(ndtri(0.025)), -stdtrit(freedom, 0.025)
    z = normal + (student - normal) * np.sqrt(1 - 1 / effect)
    count = counts / effect
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z * np.sqrt(share * (1 - share) / count + z * z / (4 * count**2)) / (1 + z * z / count)
    return (middle - reach).clip(0, share), (middle + reach).clip(share, 1)


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.tolist())


def _ints(values: np.ndarray) -> tuple[int, ...]:
    return tuple(values.astype(int).tolist())
