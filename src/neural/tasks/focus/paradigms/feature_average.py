"""Feature averaging: the classifier's last layer gets the weighted mean of features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focus.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class FeatureAverage(Paradigm):
    """Soft attention over features instead of inputs, as is common inside networks."""

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−log softmax(head(Σⱼ aⱼ h(xⱼ)))[y]."""
        return -batch.gather_label(self.predict(batch))

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """Log probabilities of the mean features."""
        return batch.feature_blend_log_probs(self.focus_weights(batch.scores))

    def max_classifier_calls(self, segments: int, samples: int) -> int:
        """All segments: each passes all layers except the last."""
        return segments
