"""Feature averaging: the classifier's last layer gets the weighted mean of the features.

A paradigm (paradigm.py) is a loss that trains the focus on the segments of an example and the
classifier together. xⱼ is segment j and aⱼ its focus weight, y the label. The features h(xⱼ) are
the inputs of the last layer of the classifier, called head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focus.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class FeatureAverage(Paradigm):
    """Soft attention over features instead of inputs: the usual attention pooling."""

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−log softmax(head(Σⱼ aⱼ h(xⱼ)))[y]."""
        return -batch.gather_label(self.predict(batch))

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """Log probabilities of the mean features."""
        return batch.feature_blend_log_probs(self.focus_weights(batch.scores))

    def max_classifier_calls(self, num_segments: int, num_selected: int) -> int:
        """One per segment, because each segment passes through all layers except the last."""
        return num_segments
