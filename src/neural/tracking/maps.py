"""Attention written out, pair by pair: what the plain definition of every measure reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from neural.modules.late import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


@dataclass(frozen=True)
class Maps:
    """The weights of some rows of one layer, and what they came from."""

    weights: Float[Tensor, "B H Q K"]
    """Rows sum to 1; hidden keys get 0; an empty row is all 0."""
    kept: Bool[Tensor, "B H Q K"]
    """Which keys a query may see."""
    at: Int[Tensor, " Q"]
    """Where each query stands, counted in keys."""
    scores: Float[Tensor, "B H Q K"] | None = None
    """Before the softmax, biases included; weights that came another way have none."""
    tokens: Int[Tensor, "B K"] | None = None
    """Which token each key is."""

    @property
    def visible(self) -> Int[Tensor, "B H Q"]:
        """How many keys each row may see."""
        return self.kept.sum(dim=-1)

    @property
    def distance(self) -> Float[Tensor, "Q K"]:
        """How many positions lie between a query and a key; negative before the query."""
        keys = torch.arange(self.weights.shape[-1], device=self.weights.device)
        return (keys - self.at.unsqueeze(-1)).float()

    def mass(self, target: Int[Tensor, "#B #H Q"]) -> Float[Tensor, "B H Q"]:
        """The weight of one key per row; NaN where that key is hidden or does not exist (-1 or past the end)."""
        keys = self.weights.shape[-1]
        there = (target >= 0) & (target < keys)
        index = torch.where(there, target, 0).expand(self.weights.shape[:-1]).unsqueeze(-1)
        seen = self.kept.gather(-1, index).squeeze(-1) & there
        return self.weights.gather(-1, index).squeeze(-1).masked_fill(~seen, float("nan"))
