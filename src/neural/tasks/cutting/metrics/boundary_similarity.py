"""Boundary similarity B: how many edits turn one segmentation into the other (Fournier, 2013), with n_t = 2."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import AverageMetric, Places, gaps


class BoundarySimilarity(AverageMetric):
    """1 − (misses + near misses / 2) / (misses + near misses + matches), counted in boundaries: 1 is best.

    A near miss is a boundary that stands one element beside the true one (n_t = 2) and is one edit, of half the weight;
    a miss stands in one of the two alone. 1 where neither has a boundary.
    """

    better: ClassVar[Literal["low", "high"]] = "high"

    def value(self, truth: Boundaries, prediction: Boundaries) -> float:
        """Exactly the fewest edits: as many near misses as can be had at once."""
        alone = truth != prediction
        near = near_misses(truth, alone)
        misses = int(alone.sum()) - 2 * near
        edits = misses + near + int((truth & prediction).sum())
        return 1 - (misses + near / 2) / edits if edits else 1.0

    def row_by_place(self, truth: Boundaries, prediction: Boundaries) -> Places:
        """Edits where they stand, near misses half at either boundary; B is a ratio, as F1 is."""
        alone = truth != prediction
        near = np.zeros(len(truth))
        starts = near_miss_places(truth, alone)
        near[starts] = near[starts + 1] = 0.5
        matches = (truth & prediction).astype(float)
        edits = matches + near + (alone & (near == 0))
        if not edits.any():
            return super().row_by_place(truth, prediction)
        return gaps(np.stack([matches + near / 2, edits], axis=1) / edits.sum())


def near_misses(truth: Boundaries, alone: Boundaries) -> int:
    """How many neighbours, one true and one predicted, can be paired, each once.

    In a run of boundaries that are true and predicted in turn every second link can be taken: of L links, (L + 1) // 2.
    """
    return len(near_miss_places(truth, alone))


def near_miss_places(truth: Boundaries, alone: Boundaries) -> npt.NDArray[np.int64]:
    """The first boundary of each pair."""
    links = alone[1:] & alone[:-1] & (truth[1:] != truth[:-1])
    edges = np.flatnonzero(np.diff(links, prepend=False, append=False))
    pairs = [np.arange(start, stop, 2) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *pairs])
