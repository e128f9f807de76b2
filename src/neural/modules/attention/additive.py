"""Additive attention (Bahdanau et al., 2015): a small network, not a product, scores a query against a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.shapes import Cost
from neural.modules.attention.self import softmax
from neural.modules.late import Module, nn, torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism
from neural.modules.rowwise import by_rows, rows_at_once

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Additive(Mechanism):
    """Weights are the softmax of u · tanh(q + k), with a learned u for each head."""

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """softmax(u · tanh(q + k)); `extra` (H, D) is u. The layer's projections are the paper's W and U."""
        assert extra is not None
        # contiguous first: a layer's heads are a transposed view, and the sum would have to be copied to be flattened
        met = torch.tanh(q.contiguous().unsqueeze(-2) + k.contiguous().unsqueeze(-3))
        found = (met.flatten(2, 3) @ extra.to(met.dtype).unsqueeze(-1)).view(met.shape[:-1])
        added = mask.biases()
        found = found if added is None else found + added
        return softmax(found, mask.kept(q.shape[-2], k.shape[-2], q.device))

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """The definition on a few queries at a time: a number per query, key and feature at once would be too many."""
        return by_rows(self, q, k, v, mask, dropout, extra, per_weight=q.shape[-1])

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """A product with u for every pair and one with the values, and the tanh besides; kept is what RowWise keeps."""
        kept = queries * keys * (width + 1) if queries <= rows_at_once(keys * width) else 0
        return Cost(
            multiply_adds=2 * heads * queries * keys * width, activations=heads * (queries * width + kept)
        )

    def learned(self, width: int, heads: int, head_width: int) -> Direction:
        """The u of every head."""
        return Direction(heads, head_width)

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """Parameters alone: they are there, nothing is computed."""
        return Cost(parameters=heads * head_width)

    def extra(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> Tensor:
        """A u for every head."""
        return torch.randn(q.shape[1], q.shape[-1], dtype=q.dtype, requires_grad=True)


class Direction(Module):
    """What the meeting of a query and a key is measured along, for every head."""

    def __init__(self, heads: int, head_width: int) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.randn(heads, head_width) / head_width**0.5)

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "H D"]:
        """The same for every sequence."""
        return self.u
