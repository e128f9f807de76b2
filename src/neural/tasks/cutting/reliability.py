"""A reliability diagram in numbers: bin by bin, what was said and what came true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from neural.tasks.cutting.bins import equal_width_edges, gathered
from neural.tasks.cutting.expected_error import BINS


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


def reliability(p: np.ndarray, hits: np.ndarray, documents: np.ndarray, *, bins: int = BINS) -> Reliability:
    """The bins of equal width that the plain expected error is made of.

    Intervals are Wilson's (1927): right also where nothing or everything came true. Elements of one document come true
    together, so a bin counts for as many elements as would be as uncertain if they were independent, at the most for
    those that it has.
    """
    edges = equal_width_edges(bins)
    cells = gathered(edges, p, hits, documents)
    everything = cells[:, 0].sum(axis=0)
    held = everything > 0
    cells = cells[:, :, held]
    counts, sums, came = cells.sum(axis=0)
    true = came / counts
    low, high = _wilson(true, _independent(cells, counts, true))
    return Reliability(
        counts=_ints(counts), said=_floats(sums / counts), true=_floats(true), low=_floats(low), high=_floats(high),
        edges=_floats(edges), everything=_ints(everything),
    )  # fmt: skip


def _independent(cells: np.ndarray, counts: np.ndarray, true: np.ndarray) -> np.ndarray:
    """How many independent elements would be as uncertain as those of whole documents (Kish's design effect)."""
    documents = len(cells)
    if documents < 2:
        return counts
    apart = ((cells[:, 2] - true * cells[:, 0]) ** 2).sum(axis=0) * documents / (documents - 1)
    alone = counts * true * (1 - true)
    return counts / np.maximum(np.divide(apart, alone, out=np.ones_like(apart), where=alone > 0), 1)


def _wilson(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z = float(ndtri(0.975))
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z * np.sqrt(share * (1 - share) / count + z * z / (4 * count**2)) / (1 + z * z / count)
    return (middle - reach).clip(0, share), (middle + reach).clip(share, 1)


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.tolist())


def _ints(values: np.ndarray) -> tuple[int, ...]:
    return tuple(values.astype(int).tolist())
