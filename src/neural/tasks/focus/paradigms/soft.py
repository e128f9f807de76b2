"""Soft attention (Bahdanau et al., 2015; Xu et al., 2015): classifies the mean segment.

A paradigm (paradigm.py) is a loss that trains the focus on the segments of an example and the
classifier g together. xⱼ is segment j and aⱼ its focus weight, y the label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focus.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class Soft(Paradigm):
    """Classifies the weighted mean of all segments: cheap, but the focus may stay diffuse."""

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−log softmax(g(Σⱼ aⱼ xⱼ))[y]."""
        return -batch.gather_label(self.predict(batch))

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """Log probabilities of the weighted mean."""
        return batch.blend_log_probs(self.focus_weights(batch.scores))

    def max_classifier_calls(self, num_segments: int, num_selected: int) -> int:
        """One, for any number of segments."""
        return 1
