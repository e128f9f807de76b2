"""Convert between three encodings of a segmentation: boundaries, segment lengths and labels.

An element is a sentence or line of a document, or a word. `boundaries[i]` is True if a segment
begins at element i. Every document begins with a segment, so element 0 carries no information and
is False by convention. The segment lengths [2, 3] and the labels [7, 7, 4, 4, 4] are both the
boundaries [False, False, True, False, False].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Boundaries = npt.NDArray[np.bool_]
"""True where a segment begins, (elements,)."""


def check_boundaries(boundaries: npt.ArrayLike, name: str = "boundaries") -> Boundaries:
    """Copy as a bool array with False at element 0.

    ValueError unless the argument is a 1-d array of bool, or of 0 and 1, with at least one element.
    `name` is used in messages.
    """
    values: npt.NDArray[Any] = np.asarray(boundaries)
    if values.ndim != 1:
        raise ValueError(
            f"{name}: one value per element is needed, got an array of shape {values.shape}"
        )
    if len(values) == 0:
        raise ValueError(f"{name}: a document needs at least one element, got none")
    if values.dtype != bool and not (
        np.issubdtype(values.dtype, np.integer) and np.isin(values, (0, 1)).all()
    ):
        raise ValueError(f"{name}: True or False for every element; decode probabilities first")
    checked = values.astype(bool)
    checked[0] = False
    return checked


def check_pair(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> tuple[Boundaries, Boundaries]:
    """Both arguments after `check_boundaries`; ValueError if their lengths differ."""
    true = check_boundaries(truth, "truth")
    predicted = check_boundaries(prediction, "prediction")
    if len(true) != len(predicted):
        raise ValueError(
            f"the truth has {len(true):,} elements, the prediction {len(predicted):,}: "
            "not the same document"
        )
    return true, predicted


def boundaries_to_lengths(boundaries: npt.ArrayLike) -> list[int]:
    """Number of elements in each segment, in document order."""
    checked = check_boundaries(boundaries)
    return np.diff(np.flatnonzero(checked), prepend=0, append=len(checked)).tolist()


def lengths_to_boundaries(segment_lengths: Sequence[int] | npt.NDArray[Any]) -> Boundaries:
    """Boundaries of segments with these lengths."""
    lengths = np.asarray(segment_lengths)
    if (
        lengths.ndim != 1
        or len(lengths) == 0
        or not np.issubdtype(lengths.dtype, np.integer)
        or (lengths < 1).any()
    ):
        raise ValueError(
            "segment lengths: at least one segment, each of one element or more; "
            f"got {list(segment_lengths)}"
        )
    boundaries = np.zeros(int(lengths.sum()), bool)
    boundaries[np.cumsum(lengths)[:-1]] = True
    return boundaries


def labels_to_boundaries(labels: npt.ArrayLike) -> Boundaries:
    """Boundaries where the label differs from that of the element before."""
    values: npt.NDArray[Any] = np.asarray(labels)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"labels: one per element, at least one; got an array of shape {values.shape}"
        )
    return np.concatenate([[False], values[1:] != values[:-1]])


def boundaries_to_words(boundaries: npt.ArrayLike, word_counts: npt.ArrayLike) -> Boundaries:
    """The same segmentation with words as elements. An element with 0 words counts as one word.

    `word_counts` is the number of words of each element. It allows comparison with results
    published for Choi's benchmark (2000), which are values of Pk (metrics/pk.py) over words.
    """
    checked = check_boundaries(boundaries)
    lengths = np.maximum(np.asarray(word_counts, np.int64), 1)
    if lengths.shape != checked.shape:
        raise ValueError(f"{len(checked):,} elements, but {lengths.size:,} word counts")
    return lengths_to_boundaries(
        np.add.reduceat(lengths, np.flatnonzero(np.concatenate([[True], checked[1:]])))
    )
