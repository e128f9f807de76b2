"""Averaging logits: what some code calls marginal likelihood, and is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.modules.late import functional
from neural.tasks.focusing.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class LogitAverage(Paradigm):
    """The scores of all segments are averaged by the focus, then normalised: a product of experts."""

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """−log softmax(Σⱼ aⱼ g(xⱼ))[y]."""
        return -given.of_label(self.predict(given))

    def predict(self, given: Segments) -> Float[Tensor, "B C"]:
        """Of the averaged scores."""
        averaged = (self.focus(given.scores).unsqueeze(-1) * given.logits(None)).sum(dim=1)
        return functional.log_softmax(averaged, dim=-1)

    def calls(self, segments: int, samples: int) -> int:
        """All segments."""
        return segments
