"""Boundary-aware attention: keys that are likely to begin a segment of the text get more weight.

A small network gives every position a boundary score s = sigmoid(logit / temperature);
(s_i + s_j) / 2 is added to the attention score of query i and key j. The query's half, s_i / 2, is
the same for all keys of a query and cancels in the softmax. So `attend` adds only the key's half,
which torch's fused kernel can add at little cost.

A mechanism (mechanism.py): `weights` defines it, `attend` computes `weights @ v` fast, and `cost`
counts its multiply-adds and the values saved for the backward pass. `Self` is plain softmax
attention (self.py). `extra` is the output of the mechanism's learned module.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.language.shapes import Cost
from neural.nn.attention.self import Self, dot_product_scores, fused_attention, masked_softmax
from neural.nn.kernel_dispatch import use_kernel
from neural.nn.lazy_torch import Module, functional, nn, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def _load_kernel() -> ModuleType:
    """The compiled form of `attend`, imported at its first use."""
    from neural.nn.kernels import boundary_aware

    return boundary_aware


class BoundaryAware(Mechanism):
    """Adds (s_i + s_j) / 2 to every score, where s is the learned boundary score of a position."""

    temperature: float = float_field(
        "Temperature of the boundary scores; below 1 they are closer to 0 or 1.",
        default=1.0,
        above=0,
    )

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax with both halves of the bias; `extra` (B, K) are the boundary scores."""
        assert extra is not None
        queries, keys = q.shape[-2], k.shape[-2]
        # The queries are the last positions of the keys. More queries than keys are of another
        # sequence without boundary scores; their half cancels in the softmax anyway.
        query_scores = (
            extra[:, keys - queries :]
            if queries <= keys
            else extra.new_zeros(extra.shape[0], queries)
        )
        bias = (query_scores[:, None, :, None] + extra[:, None, None, :]) / 2
        return masked_softmax(
            dot_product_scores(q, k, mask) + bias, mask.to_keep_mask(queries, keys, q.device)
        )

    @use_kernel(_load_kernel)
    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """The fused kernel with the key's half of the bias."""
        return fused_attention(q, k, v, self.softmax_mask(q, k, mask, extra), dropout)

    def softmax_mask(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Mask:
        """The mask with the key's half as key bias."""
        assert extra is not None
        half = extra[:, None, :] / 2
        return replace(mask, key_bias=half if mask.key_bias is None else mask.key_bias + half)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Full attention; saves also the bias of each key.

        Without the kernel, q, k and v have one more column, for the bias.
        """
        return Self().cost(heads, queries, keys, width) + Cost(activations=heads * keys)

    def build_learned(self, width: int, heads: int, head_width: int) -> BoundaryScorer:
        """The network of the boundary scores."""
        return BoundaryScorer(width, self.temperature)

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """Two linear maps, to half the width and to one value.

        Saves, for each position, the hidden features and three values: the logit, the boundary
        score, and half of it, the bias.
        """
        hidden = BoundaryScorer.hidden_width(width)
        return Cost(
            parameters=hidden * (width + 1) + hidden + 1,
            multiply_adds=keys * hidden * (width + 1),
            activations=keys * (hidden + 3),
        )

    def example_extra(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]) -> Tensor:
        """Random boundary scores between 0 and 1."""
        return torch.rand(k.shape[0], k.shape[-2], dtype=k.dtype, requires_grad=True)

    @classmethod
    def example(cls) -> Mechanism:
        """An instance for tests."""
        return cls(temperature=0.5)


class BoundaryScorer(Module):
    """Boundary score of each position, between 0 and 1."""

    logits: Float[Tensor, "B T"] | None = None
    """Logits of the last call, before temperature and sigmoid, for an auxiliary boundary loss."""

    def __init__(self, width: int, temperature: float) -> None:
        super().__init__()
        hidden = self.hidden_width(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, 1)
        self.temperature = temperature

    @staticmethod
    def hidden_width(width: int) -> int:
        """Half the width of the input, at least 1."""
        return max(1, width // 2)

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T"]:
        """sigmoid(logits / temperature), position by position."""
        self.logits = self.down(functional.relu(self.up(x))).squeeze(-1)
        return (self.logits / self.temperature).sigmoid()
