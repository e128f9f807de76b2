"""Boundary similarity B: how many edits turn one segmentation into the other (Fournier, 2013), with n_t = 2."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import AverageMetric


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


def near_misses(truth: Boundaries, alone: Boundaries) -> int:
    """How many neighbours, one true and one predicted, can be paired, each once.

    In a run of boundaries that are true and predicted in turn every second link can be taken: of L links, (L + 1) // 2.
    """
    links = alone[1:] & alone[:-1] & (truth[1:] != truth[:-1])
    edges = np.flatnonzero(np.diff(links, prepend=False, append=False))
    return int(((edges[1::2] - edges[::2] + 1) // 2).sum())
