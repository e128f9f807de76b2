"""The two ways to write a segmentation: where parts begin (a bool per element), and how long they are (masses).

`boundaries[i]` says that a part begins at element i. A part always begins at element 0, so that says nothing and is
False by convention: the masses [2, 3] are [False, False, True, False, False].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Boundaries = npt.NDArray[np.bool_]


def checked(boundaries: npt.ArrayLike, what: str = "boundaries") -> Boundaries:
    """A copy with False at element 0; ValueError where it is no segmentation of at least one element."""
    found: npt.NDArray[Any] = np.asarray(boundaries)
    if found.ndim != 1:
        raise ValueError(f"{what}: one value per element is needed, got an array of shape {found.shape}")
    if len(found) == 0:
        raise ValueError(f"{what}: a document needs at least one element, got none")
    if found.dtype != bool and not (np.issubdtype(found.dtype, np.integer) and np.isin(found, (0, 1)).all()):
        raise ValueError(f"{what}: True or False for every element; probabilities are decoded first")
    made = found.astype(bool)
    made[0] = False
    return made


def checked_pair(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> tuple[Boundaries, Boundaries]:
    """Two segmentations of the same document."""
    one, other = checked(truth, "truth"), checked(prediction, "prediction")
    if len(one) != len(other):
        raise ValueError(f"the truth has {len(one):,} elements, the prediction {len(other):,}: not the same document")
    return one, other


def masses(boundaries: npt.ArrayLike) -> list[int]:
    """How many elements each part has, the first part first."""
    made = checked(boundaries)
    return np.diff(np.flatnonzero(made), prepend=0, append=len(made)).tolist()


def boundaries_of(masses: Sequence[int] | npt.NDArray[Any]) -> Boundaries:
    """Where the parts of these lengths begin."""
    lengths = np.asarray(masses)
    if lengths.ndim != 1 or len(lengths) == 0 or not np.issubdtype(lengths.dtype, np.integer) or (lengths < 1).any():
        raise ValueError(f"masses: at least one part, each of one element or more; got {list(masses)}")
    made = np.zeros(int(lengths.sum()), bool)
    made[np.cumsum(lengths)[:-1]] = True
    return made


def label_changes(labels: npt.ArrayLike) -> Boundaries:
    """A part begins where the label is another than that of the element before."""
    found: npt.NDArray[Any] = np.asarray(labels)
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(f"labels: one per element, at least one; got an array of shape {found.shape}")
    return np.concatenate([[False], found[1:] != found[:-1]])


def in_words(boundaries: npt.ArrayLike, words: npt.ArrayLike) -> Boundaries:
    """The same segmentation with words as elements; `words` counts those of every element, 0 as 1.

    The figures published for Choi's documents are Pk over words.
    """
    made, lengths = checked(boundaries), np.maximum(np.asarray(words, np.int64), 1)
    if lengths.shape != made.shape:
        raise ValueError(f"{len(made):,} elements, but {lengths.size:,} numbers of words")
    return boundaries_of(np.add.reduceat(lengths, np.flatnonzero(np.concatenate([[True], made[1:]]))))
