"""F1 of boundaries: those found that are true, those true that are found; exactly, or a few elements beside."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import Counts, Metric, harmonic

TOLERANCES = (0, 1, 2)
"""Elements that a boundary may stand beside the true one."""


class BoundaryF1(Metric):
    """Harmonic mean of precision and recall of the boundaries inside a document: 1 is best.

    With a tolerance every boundary is paired once at most, as many pairs as possible. Micro: all boundaries of all
    documents alike; macro: the average of the documents. Nothing true and nothing found is right: 1 in the average of
    documents, and in the whole where no document has any.
    """

    better: ClassVar[Literal["low", "high"]] = "high"

    def row(self, truth: Boundaries, prediction: Boundaries) -> Counts:
        """One document, its boundaries, and for every tolerance the pairs and the document's own F1."""
        true, found = np.flatnonzero(truth), np.flatnonzero(prediction)
        pairs = np.array([paired(true, found, tolerance) for tolerance in TOLERANCES], float)
        alone = harmonic(pairs, len(true), len(found), of_nothing=1.0)
        return np.concatenate([[1, len(true), len(found)], pairs, alone])

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """`boundary_f1`, `boundary_f1_within_1`, …; the same with `_macro`."""
        documents, true, found = totals[..., 0], totals[..., 1], totals[..., 2]
        pairs, alone = np.split(totals[..., 3:], 2, axis=-1)
        names = ["boundary_f1" + (f"_within_{one}" if one else "") for one in TOLERANCES]
        micro = {name: harmonic(pairs[..., at], true, found, of_nothing=1.0) for at, name in enumerate(names)}
        return micro | {f"{name}_macro": alone[..., at] / documents for at, name in enumerate(names)}


def paired(true: npt.NDArray[np.int64], found: npt.NDArray[np.int64], tolerance: int) -> int:
    """The most pairs of a true and a found place at most `tolerance` apart, each place once; both are sorted.

    From left to right the first two that fit are paired: exchanging any other partner for an earlier one loses nothing.
    """
    if tolerance == 0:
        return len(np.intersect1d(true, found, assume_unique=True))
    left, right = true.tolist(), found.tolist()
    at = beside = pairs = 0
    while at < len(left) and beside < len(right):
        apart = left[at] - right[beside]
        if apart > tolerance:
            beside += 1
        elif apart < -tolerance:
            at += 1
        else:
            pairs, at, beside = pairs + 1, at + 1, beside + 1
    return pairs
