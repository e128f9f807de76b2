"""Gated focus: a gate on every segment, open or shut by itself (Dauphin et al., 2017), then shares of what is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.modules.late import functional
from neural.tasks.focusing.paradigms.soft import Soft

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Gated(Soft):
    """Soft attention by sigmoid gates: past a score of 0 nothing more is won, so that no segment drowns another."""

    def focus(self, scores: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """σ(sⱼ) / Σᵢ σ(sᵢ): two open gates share alike, however far apart their scores are."""
        return functional.softmax(functional.logsigmoid(scores), dim=-1)
