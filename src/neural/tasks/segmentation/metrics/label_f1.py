"""Macro F1 of the labels of elements (sentences or lines).

A metric (metric.py) counts in each document, and computes scores from the sums of these counts over
documents. Confidence intervals also need the counts by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.metric import Counts, PositionCounts, SegmentationMetric, f1_score


class LabelF1(SegmentationMetric):
    """F1 of each class over all elements, averaged over the classes that occur: 1 is best.

    Labels are integers from 0. A class occurs if it is a true or predicted label anywhere. The
    score is NaN if there are no elements. An empty array stands for a document without labels.
    """

    better: ClassVar[Literal["low", "high"]] = "high"
    input_kind: ClassVar[Literal["boundaries", "labels"]] = "labels"

    def count_documents(
        self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
    ) -> Counts:
        """Counts of each document, (documents, 3C).

        They are the numbers of correct elements of each of the C classes, then of true ones, then
        of predicted ones.
        """
        pairs, num_classes = _check_pairs(truths, predictions)
        return np.stack(
            [
                np.concatenate(
                    [
                        np.bincount(labels, minlength=num_classes)
                        for labels in (true[true == predicted], true, predicted)
                    ]
                )
                for true, predicted in pairs
            ]
        ).astype(float)

    def count_positions(
        self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
    ) -> list[PositionCounts]:
        """Counts by position, that is, by comparison that the metric makes (metric.py).

        Here each element is one comparison, so the elements that it depends on are itself.
        """
        pairs, num_classes = _check_pairs(truths, predictions)
        one_hot = np.eye(num_classes)
        return [
            PositionCounts(
                rows=np.hstack(
                    [
                        one_hot[true] * (true == predicted)[:, None],
                        one_hot[true],
                        one_hot[predicted],
                    ]
                ),
                first=np.arange(len(true)),
                last=np.arange(len(true)),
            )
            for true, predicted in pairs
        ]

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """`label_f1`, from sums of the counts of `count_documents`."""
        class_f1 = f1_score(*np.split(totals, 3, axis=-1), empty_value=np.nan)
        class_count = np.isfinite(class_f1).sum(axis=-1)  # classes that occur
        return {
            "label_f1": np.where(
                class_count > 0, np.nansum(class_f1, axis=-1) / np.maximum(class_count, 1), np.nan
            )
        }


def _check_pairs(
    truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
) -> tuple[list[tuple[npt.NDArray[Any], npt.NDArray[Any]]], int]:
    """Checked labels, and the number of classes in all of them."""
    pairs = [check_labels(*pair) for pair in zip(truths, predictions, strict=True)]
    highest_labels = (int(max(labels.max() for labels in pair)) for pair in pairs if len(pair[0]))
    return pairs, 1 + max(highest_labels, default=0)


def check_labels(
    truth: npt.ArrayLike, prediction: npt.ArrayLike
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Check the true and predicted labels of one document."""
    pair = np.asarray(truth), np.asarray(prediction)
    for labels, kind in zip(pair, ("true", "predicted"), strict=True):
        if labels.ndim != 1 or (
            len(labels) and (not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0)
        ):
            raise ValueError(
                f"{kind} labels: an integer from 0 for every element, "
                f"got {labels.dtype} {labels.shape}"
            )
    if len(pair[0]) != len(pair[1]):
        raise ValueError(
            f"{len(pair[0]):,} true labels, {len(pair[1]):,} predicted ones: not the same document"
        )
    return pair[0].astype(np.int64), pair[1].astype(np.int64)
