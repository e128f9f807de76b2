"""Boundary-aware attention: positions that look like boundaries are looked at more, and look more.

A small network gives every position a score s = sigmoid(logit / temperature); (s_i + s_j) / 2 is added to the score of
query i and key j. The query's half is the same for all keys of a row and cancels in the softmax, so only the key's
half has to be computed, and that folds into the fused kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import number
from neural.language.shapes import Cost
from neural.modules.attention.self import Self, fused, scores, softmax
from neural.modules.compiled import compiled
from neural.modules.late import Module, functional, nn, torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class BoundaryAware(Mechanism):
    """Adds (s_i + s_j) / 2 to every score, where s says how much a position looks like a boundary."""

    saved_inputs: ClassVar[str] = ""   # those with the new column instead, see `cost`

    temperature: float = number("Below 1, scores of positions are pushed towards 0 or 1.", default=1.0, above=0)

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax of the scores with both halves of the bias; `extra` are the boundary scores of the keys."""
        assert extra is not None
        queries, keys = q.shape[-2], k.shape[-2]
        # the queries are the last of the keys; queries of another sequence have no score, and it would cancel
        own = extra[:, keys - queries :] if queries <= keys else extra.new_zeros(extra.shape[0], queries)
        bias = (own[:, None, :, None] + extra[:, None, None, :]) / 2
        return softmax(scores(q, k, mask) + bias, mask.kept(queries, keys, q.device))

    @compiled("neural.modules.kernels.boundary_aware")
    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """The fused kernel with the key's half alone."""
        return fused(q, k, v, self.as_softmax(q, k, mask, extra), dropout)

    def as_softmax(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Mask:
        """The key's half is a bias on it."""
        assert extra is not None
        half = extra[:, None, :] / 2
        return replace(mask, key_bias=half if mask.key_bias is None else mask.key_bias + half)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Full attention on heads that are one wider; queries, keys and values are kept with the new column."""
        again = Cost(activations=heads * (queries + 2 * keys) * (width + 1))
        return Self().cost(heads, queries, keys, width + 1) + again

    def learned(self, width: int, heads: int, head_width: int) -> BoundaryScorer:
        """The network that gives every position its score."""
        return BoundaryScorer(width, self.temperature)

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """Two linear maps, to half the width and to one number."""
        half = width // 2
        return Cost(
            parameters=half * (width + 1) + half + 1,
            multiply_adds=keys * half * (width + 1),
            activations=keys * (half + 3),
        )

    def extra(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> Tensor:
        """Scores between 0 and 1."""
        return torch.rand(k.shape[0], k.shape[-2], dtype=k.dtype, requires_grad=True)

    @classmethod
    def tiny(cls) -> Mechanism:
        """Sharper than usual."""
        return cls(temperature=0.5)


class BoundaryScorer(Module):
    """How much each position looks like a boundary, between 0 and 1."""

    logits: Float[Tensor, "B T"] | None = None
    """Before temperature and sigmoid, of the last call: what an auxiliary boundary loss takes."""

    def __init__(self, width: int, temperature: float) -> None:
        super().__init__()
        self.up = nn.Linear(width, width // 2)
        self.down = nn.Linear(width // 2, 1)
        self.temperature = temperature

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T"]:
        """Each position alone."""
        self.logits = self.down(functional.relu(self.up(x))).squeeze(-1)
        return (self.logits / self.temperature).sigmoid()
