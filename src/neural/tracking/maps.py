"""Attention written out, pair by pair: what the plain definition of every measure reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from neural.modules.late import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

Axis = Literal["shared", "keys", "unknown"]
"""Known positions of a call: of queries and keys on one axis (self-attention), of the keys alone
(cross-attention), or none."""
UNPLACED = -(2**30)
"""Position of a query that has none among the keys: far before every key."""


@dataclass(frozen=True)
class Maps:
    """The weights of some rows of one layer, and what they came from."""

    weights: Float[Tensor, "B H Q K"]
    """Rows sum to 1; hidden keys get 0; an empty row is all 0."""
    kept: Bool[Tensor, "B H Q K"]
    """Which keys a query may see."""
    at: Int[Tensor, " Q"]
    """Where each query stands, counted in keys; UNPLACED unless queries and keys share an axis."""
    origins: Int[Tensor, "B Q"]
    """The first key of the text that each query belongs to."""
    scores: Float[Tensor, "B H Q K"] | None = None
    """Before the softmax, biases included; weights that came another way have none."""
    tokens: Int[Tensor, "B K"] | None = None
    """Which token each key is."""
    extra_keys: int = 0
    """Number of last keys that are not positions: learned sinks, `add_bias_kv`, `add_zero_attn`."""
    axis: Axis = "shared"

    @property
    def positions(self) -> int:
        """How many of the first keys are positions."""
        return self.weights.shape[-1] - self.extra_keys

    @property
    def placed(self) -> Float[Tensor, "B H Q P"]:
        """The weights of keys that are positions; a row sums to 1 minus what the extra keys take."""
        return self.weights[..., : self.positions]

    @property
    def extra_mass(self) -> Float[Tensor, "B H Q"]:
        """What the extra keys take of each row."""
        return self.weights[..., self.positions :].sum(dim=-1)

    @property
    def visible(self) -> Int[Tensor, "B H Q"]:
        """How many keys each row may see."""
        return self.kept.sum(dim=-1)

    @property
    def distance(self) -> Float[Tensor, "Q P"]:
        """Positions from a query to a key; negative before the query; NaN without a shared axis."""
        keys = torch.arange(self.positions, device=self.weights.device)
        away = (keys - self.at.unsqueeze(-1)).float()
        return away if self.axis == "shared" else torch.full_like(away, float("nan"))

    def mass(self, target: Int[Tensor, "#B #H Q"]) -> Float[Tensor, "B H Q"]:
        """The weight of one key per row; NaN where that key is hidden or does not exist (-1 or past the end)."""
        there = (target >= 0) & (target < self.positions)
        index = torch.where(there, target, 0).expand(self.weights.shape[:-1]).unsqueeze(-1)
        seen = self.kept.gather(-1, index).squeeze(-1) & there
        return self.weights.gather(-1, index).squeeze(-1).masked_fill(~seen, float("nan"))
