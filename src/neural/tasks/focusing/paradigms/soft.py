"""Soft attention (Bahdanau et al., 2015; Xu et al., 2015): classify the weighted mean of the segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focusing.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class Soft(Paradigm):
    """One blend of all segments is classified: cheap and quick to begin, and content with a vague focus."""

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """−log softmax(g(Σⱼ aⱼ xⱼ))[y]."""
        return -given.of_label(self.predict(given))

    def predict(self, given: Segments) -> Float[Tensor, "B C"]:
        """Of the blend."""
        return given.blended(self.focus(given.scores))

    def calls(self, segments: int, samples: int) -> int:
        """One, whatever m."""
        return 1
