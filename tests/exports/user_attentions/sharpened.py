"""A softmax of sharpened scores, with a learned temperature for every head."""

from __future__ import annotations

from dataclasses import replace as copy_with
from typing import ClassVar

from torch import Tensor

from neural.language.declaration import float_field
from neural.language.shapes import Cost
from neural.nn.attention.self import Self
from neural.nn.lazy_torch import Module, nn, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism
from tests.exports.user_attentions import helpers as functional
from tests.exports.user_attentions.helpers import Linear

BLOCK_SIZE = 2.0
widen = Linear()


def fused_attention(x: Tensor) -> Tensor:
    """Has the name of an attention function of ours."""
    return BLOCK_SIZE * functional.split_into_blocks(x)


def masked_softmax(dot_product_scores: Tensor, keep: Tensor | None) -> Tensor:
    """Softmax with zeros for empty rows; an argument shadows a function of ours."""
    if keep is None:
        return dot_product_scores.softmax(dim=-1)
    return dot_product_scores.masked_fill(~keep, -1e9).softmax(dim=-1) * keep


class Sharpened(Mechanism):
    """Softmax of scores with a learned temperature for every head."""

    saved_matrices: ClassVar[float] = 3.0
    offset: ClassVar[float] = 0.5
    sharpness: float = float_field("Factor on the scores of all heads.", default=1.5, above=0)

    def weights(self, q: Tensor, k: Tensor, mask: Mask, extra: Tensor | None = None) -> Tensor:
        """softmax(sharpness · temperature · q·kᵀ / D)."""
        assert extra is not None
        product = (
            functional.dot_product_scores(fused_attention(q), widen(k))
            * self.sharpness
            * self.offset
        )
        bias = mask.combine_biases()
        product = product * extra[:, None, None]
        product = product if bias is None else product + bias
        return masked_softmax(product, mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device))

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """By the definition, with a copy of the mask."""
        copied_mask = copy_with(mask, bias=mask.bias)
        return nn.functional.dropout(self.weights(q, k, copied_mask, extra), dropout) @ v

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """The cost of full attention."""
        return Self().cost(heads, queries, keys, width)

    def build_learned(self, width: int, heads: int, head_width: int) -> Temperature:
        """One temperature per head."""
        return Temperature(heads)

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """One parameter per head."""
        return Cost(parameters=heads)


class Temperature(Module):
    """Factors on the scores of every head."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.logarithm = nn.Parameter(torch.zeros(heads))

    def cost(self) -> Tensor:
        """Has the name of a method that only the checker calls."""
        return self.logarithm.exp()

    def forward(self, x: Tensor) -> Tensor:
        """The same for every sequence."""
        return self.cost()
