"""F1 of the elements' labels: every class counts alike, however rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.metric import Counts, Metric, Places, harmonic


class LabelF1(Metric):
    """F1 of each class over the elements of all documents, averaged over the classes that occur: 1 is best.

    Labels are whole numbers from 0. A class occurs where it is true or predicted; where there is no element at all the
    score is NaN. A document without labels is given as an empty array and adds nothing.
    """

    better: ClassVar[Literal["low", "high"]] = "high"
    reads: ClassVar[Literal["boundaries", "labels"]] = "labels"

    def counts(self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]) -> Counts:
        """For every class: right, true, predicted."""
        pairs, classes = _pairs(truths, predictions)
        return np.stack([
            np.concatenate([np.bincount(one, minlength=classes) for one in (true[true == said], true, said)])
            for true, said in pairs
        ]).astype(float)  # fmt: skip

    def places(
        self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
    ) -> list[Places]:
        """Every element is a place."""
        pairs, classes = _pairs(truths, predictions)
        each = np.eye(classes)
        return [
            Places(
                np.hstack([each[true] * (true == predicted)[:, None], each[true], each[predicted]]),
                np.arange(len(true)),
                np.arange(len(true)),
            )
            for true, predicted in pairs
        ]

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """`label_f1`."""
        each = harmonic(*np.split(totals, 3, axis=-1), of_nothing=np.nan)
        occurring = np.isfinite(each).sum(axis=-1)
        return {"label_f1": np.where(occurring > 0, np.nansum(each, axis=-1) / np.maximum(occurring, 1), np.nan)}


def _pairs(
    truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
) -> tuple[list[tuple[npt.NDArray[Any], npt.NDArray[Any]]], int]:
    """Checked labellings, and how many classes there are in all of them."""
    pairs = [checked_labels(*pair) for pair in zip(truths, predictions, strict=True)]
    highest = (int(max(labels.max() for labels in pair)) for pair in pairs if len(pair[0]))
    return pairs, 1 + max(highest, default=0)


def checked_labels(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Two labellings of the same document."""
    pair = np.asarray(truth), np.asarray(prediction)
    for one, what in zip(pair, ("true", "predicted"), strict=True):
        if one.ndim != 1 or (len(one) and (not np.issubdtype(one.dtype, np.integer) or one.min() < 0)):
            raise ValueError(f"{what} labels: a whole number from 0 for every element, got {one.dtype} {one.shape}")
    if len(pair[0]) != len(pair[1]):
        raise ValueError(f"{len(pair[0]):,} true labels, {len(pair[1]):,} predicted ones: not the same document")
    return pair[0].astype(np.int64), pair[1].astype(np.int64)
