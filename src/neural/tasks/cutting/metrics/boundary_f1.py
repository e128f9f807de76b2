"""F1 of boundaries: those found that are true, those true that are found; exactly, or a few elements beside."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import Counts, Metric, Places, gaps, harmonic

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

    def row_by_place(self, truth: Boundaries, prediction: Boundaries) -> Places:
        """Boundaries where they stand, pairs where the true one does.

        A document's own F1 is a ratio: its places are what they add to it, and how much of the document they are.
        """
        whole = int(truth.sum()) + int(prediction.sum())
        if not whole:
            return super().row_by_place(truth, prediction)
        true, predicted = np.flatnonzero(truth), np.flatnonzero(prediction)
        pairs = np.zeros((len(truth), len(TOLERANCES)))
        for at, tolerance in enumerate(TOLERANCES):
            pairs[matched(true, predicted, tolerance), at] = 1
        both = np.stack([truth, prediction], axis=1).astype(float)
        shares = both.sum(axis=1, keepdims=True) / whole
        return gaps(np.hstack([shares, both, pairs, 2 * pairs / whole]))

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
    return len(matched(true, found, tolerance))


def matched(
    true: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64], tolerance: int
) -> npt.NDArray[np.int64]:
    """The true places of these pairs."""
    if tolerance == 0:
        return np.intersect1d(true, predicted, assume_unique=True)
    left, right = true.tolist(), predicted.tolist()
    at = beside = 0
    places: list[int] = []
    while at < len(left) and beside < len(right):
        apart = left[at] - right[beside]
        if apart > tolerance:
            beside += 1
        elif apart < -tolerance:
            at += 1
        else:
            places.append(left[at])
            at, beside = at + 1, beside + 1
    return np.array(places, dtype=np.int64)
