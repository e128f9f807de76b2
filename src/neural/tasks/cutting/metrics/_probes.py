"""The window that Pk and WindowDiff slide over a document."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries


def probe_distance(truth: Boundaries) -> int:
    """k: half the mean length of a true part, rounded (halves to even), at least 2, at most from end to end."""
    parts = 1 + int(truth.sum())
    return min(max(2, round(len(truth) / (2 * parts))), len(truth) - 1)


def boundaries_between(boundaries: Boundaries, distance: int) -> npt.NDArray[np.int64]:
    """How many boundaries lie between element i and element i + distance, for each of the n − distance probes."""
    before = np.cumsum(boundaries)
    return before[distance:] - before[: len(before) - distance]
