"""Gated focus: an independent sigmoid gate per segment (Dauphin et al., 2017), normalised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.nn.lazy_torch import functional
from neural.tasks.focus.paradigms.soft import Soft

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Gated(Soft):
    """Soft attention by sigmoid gates, which saturate above 0, so that no segment dominates."""

    def focus_weights(self, scores: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """σ(sⱼ) / Σᵢ σ(sᵢ): two open gates have equal shares, whatever their scores."""
        return functional.softmax(functional.logsigmoid(scores), dim=-1)
