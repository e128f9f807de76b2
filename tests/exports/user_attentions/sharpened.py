"""A softmax of sharpened scores, with a learned temperature for every head."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import ClassVar

from torch import Tensor

from neural.language.declaration import number
from neural.language.shapes import Cost
from neural.modules.attention.self import Self
from neural.modules.late import Module, nn, torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism
from tests.exports.user_attentions import helpers as functional
from tests.exports.user_attentions.helpers import Linear

BLOCK = 2.0
widen = Linear()


def fused(x: Tensor) -> Tensor:
    """Called like the attention of ours that it is not."""
    return BLOCK * functional.in_blocks(x)


def softmax(scores: Tensor, kept: Tensor | None) -> Tensor:
    """Without the rows that see nothing; the argument hides the function of that name."""
    if kept is None:
        return scores.softmax(dim=-1)
    return scores.masked_fill(~kept, -1e9).softmax(dim=-1) * kept


class Sharpened(Mechanism):
    """Weights are the softmax of products that every head sharpens as it learns."""

    matrices: ClassVar[float] = 3.0
    offset: ClassVar[float] = 0.5
    sharpness: float = number("Of all heads together.", default=1.5, above=0)

    def weights(self, q: Tensor, k: Tensor, mask: Mask, extra: Tensor | None = None) -> Tensor:
        """softmax(sharpness · temperature · q·kᵀ / D)."""
        assert extra is not None
        product = functional.scores(fused(q), widen(k)) * self.sharpness * self.offset
        added = mask.biases()
        product = product * extra[:, None, None]
        product = product if added is None else product + added
        return softmax(product, mask.kept(q.shape[-2], k.shape[-2], q.device))

    def mix(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """As defined; without biases on an empty mask that is nothing else."""
        plain = changed(mask, bias=mask.bias)
        return nn.functional.dropout(self.weights(q, k, plain, extra), dropout) @ v

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """As of full attention."""
        return Self().cost(heads, queries, keys, width)

    def learned(self, width: int, heads: int, head_width: int) -> Temperature:
        """One number per head."""
        return Temperature(heads)

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """One parameter per head."""
        return Cost(parameters=heads)


class Temperature(Module):
    """What the scores of every head are multiplied with."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.logarithm = nn.Parameter(torch.zeros(heads))

    def cost(self) -> Tensor:
        """A method that is called like one which only the checker reads."""
        return self.logarithm.exp()

    def forward(self, x: Tensor) -> Tensor:
        """The same for every sequence."""
        return self.cost()
