"""Gated focus: an independent sigmoid gate per segment (Dauphin et al., 2017), normalised.

The focus is the weights of the segments of an example, sⱼ their scores. A paradigm (paradigm.py) is
a loss that trains the focus and a classifier together; soft attention classifies the mean segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.nn.lazy_torch import functional
from neural.tasks.focus.paradigms.soft import Soft

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Gated(Soft):
    """Soft attention with sigmoid gates: they saturate at 1, so no high score dominates."""

    def focus_weights(self, scores: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """σ(sⱼ) / Σᵢ σ(sᵢ): segments with large scores have almost equal weights."""
        return functional.softmax(functional.logsigmoid(scores), dim=-1)
