"""Attention weights as a complete matrix: the input of every measure's reference definition.

A row is the distribution of one query over the keys. Of the K keys, the first P are positions of
the sequence. Axes: B examples, H heads, Q queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

KnownPositions = Literal["queries_and_keys", "keys", "none"]
"""Whose positions are known in a call. "queries_and_keys": queries and keys are positions of one
sequence (self-attention). "keys": only the keys are positions of a known sequence
(cross-attention). "none": neither."""
UNKNOWN_POSITION = -(2**30)
"""Position of a query that has none among the keys: far before the first key."""


@dataclass(frozen=True)
class AttentionMaps:
    """Attention weights of some rows of one call, with masks and positions."""

    weights: Float[Tensor, "B H Q K"]
    """Rows sum to 1; hidden keys have 0; a row that sees no key is all 0.

    Of a signed mechanism they are |w| / Σ|w|, so that every measure is defined.
    """
    visible_mask: Bool[Tensor, "B H Q K"]
    """Whether a query may see a key."""
    query_positions: Int[Tensor, " Q"]
    """Key index of each query; UNKNOWN_POSITION if it is not known."""
    first_keys: Int[Tensor, "B Q"]
    """Index of the first key of the sequence that each query belongs to; −1 if unknown."""
    scores: Float[Tensor, "B H Q K"] | None = None
    """Scores before the softmax, biases included; None for weights that are not a softmax."""
    tokens: Int[Tensor, "B K"] | None = None
    """Token id of each key that is a position."""
    extra_keys: int = 0
    """Number of trailing keys that are not positions: learned sinks, `add_bias_kv` and the like."""
    known_positions: KnownPositions = "queries_and_keys"
    signed_weights: Float[Tensor, "B H Q K"] | None = None
    """Weights w of a signed mechanism, which may be negative; None for other mechanisms."""

    @property
    def positions(self) -> int:
        """Number of leading keys that are positions."""
        return self.weights.shape[-1] - self.extra_keys

    @property
    def position_weights(self) -> Float[Tensor, "B H Q P"]:
        """Weights of the keys that are positions; a row sums to 1 − `extra_mass`."""
        return self.weights[..., : self.positions]

    @property
    def extra_mass(self) -> Float[Tensor, "B H Q"]:
        """Total weight of the extra keys in each row."""
        return self.weights[..., self.positions :].sum(dim=-1)

    @property
    def visible_count(self) -> Int[Tensor, "B H Q"]:
        """Number of keys that each row may see."""
        return self.visible_mask.sum(dim=-1)

    @property
    def distance(self) -> Float[Tensor, "Q P"]:
        """Key position minus query position; NaN if the queries' positions are unknown."""
        keys = torch.arange(self.positions, device=self.weights.device)
        distance = (keys - self.query_positions.unsqueeze(-1)).float()
        return (
            distance
            if self.known_positions == "queries_and_keys"
            else torch.full_like(distance, float("nan"))
        )

    def mass_at(self, target: Int[Tensor, "#B #H Q"]) -> Float[Tensor, "B H Q"]:
        """Weight of one key per row; `target` is its index. NaN if it is hidden or out of range."""
        exists = (target >= 0) & (target < self.positions)
        index = torch.where(exists, target, 0).expand(self.weights.shape[:-1]).unsqueeze(-1)
        is_visible = self.visible_mask.gather(-1, index).squeeze(-1) & exists
        return self.weights.gather(-1, index).squeeze(-1).masked_fill(~is_visible, float("nan"))
