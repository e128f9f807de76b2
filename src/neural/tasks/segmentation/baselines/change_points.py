"""Kernel change-point detection on word vectors (Arlot, Celisse and Harchaoui, 2019).

The vector of an element (sentence or line) is the sum of the vectors of its words, scaled to the
length 1. A segment is good if its vectors are alike: its score is |S|² / L, where S is the sum of
its L vectors. Nothing is learned from segmented documents.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neural.language.declaration import float_field, int_field
from neural.tasks.segmentation.baseline import SegmentationBaseline
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.tokenization import tokenize_elements
from neural.tasks.segmentation.vector_kernels import square_run_sums
from neural.tasks.segmentation.word_vectors import load_word_vectors


class ChangePoints(SegmentationBaseline):
    """Finds the segmentation with the largest sum of scores minus a penalty per segment.

    The penalty is `penalty` · √(n · log n) for n elements, which makes the number of segments
    consistent as documents grow. Dynamic programming finds the optimum exactly, among segments of
    at most `max_elements`. The default penalty was chosen on documents composed of passages of
    textbooks, handbooks and books.
    """

    penalty: float = float_field("Factor of the penalty per segment.", default=0.08)
    max_elements: int = int_field("Elements of the longest segment.", default=200)

    def find_boundaries(self, elements: Sequence[str]) -> Boundaries:
        """Boundaries of the best segmentation."""
        vectors = load_word_vectors().embed_elements(tokenize_elements(elements))
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = vectors / np.where(norms > 1e-6, norms, 1)
        count, longest = len(units), min(self.max_elements, len(units))
        scores = square_run_sums(units, longest) / np.arange(1, longest + 1)
        scores -= self.penalty * np.sqrt(count * np.log(max(count, 2)))
        best, starts = np.zeros(count + 1), np.zeros(count + 1, np.int64)
        for end in range(1, count + 1):
            size = min(end, longest)
            totals = best[end - size : end][::-1] + scores[end, :size]
            length = int(totals.argmax()) + 1
            best[end], starts[end] = totals[length - 1], end - length
        boundaries = np.zeros(count, bool)
        start = int(starts[count])
        while start > 0:
            boundaries[start] = True
            start = int(starts[start])
        return boundaries
