"""Averaging features: the last layer of the classifier reads the weighted mean of what the others found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focusing.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class FeatureAverage(Paradigm):
    """Soft attention over features instead of inputs, as usual inside networks."""

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """−log softmax(head(Σⱼ aⱼ h(xⱼ)))[y]."""
        return -given.of_label(self.predict(given))

    def predict(self, given: Segments) -> Float[Tensor, "B C"]:
        """Of the blend of features."""
        return given.blended_features(self.focus(given.scores))

    def calls(self, segments: int, samples: int) -> int:
        """All segments go through all layers but the last."""
        return segments
