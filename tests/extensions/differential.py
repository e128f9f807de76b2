"""Differential attention (Ye et al., 2024): the difference of two softmax maps.

Queries and keys are split into two halves. Each half has a softmax of its own; the second, times a
learned factor λ per head, is subtracted from the first: what both attend to cancels as noise. So
weights may be negative, and a row sums to 1 − λ. `extra` is λ, (H,).

Axes: B examples, H heads, Q queries, K keys, D features of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import float_field
from neural.language.shapes import Cost
from neural.nn.attention.self import dot_product_scores, fused_attention, masked_softmax
from neural.nn.lazy_torch import Module, nn, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from torch import Tensor


class Differential(Mechanism):
    """Weights are the difference of two softmax maps: softmax(q₁·k₁ᵀ) − λ softmax(q₂·k₂ᵀ)."""

    signed: ClassVar[bool] = True

    start: float = float_field("Initial λ of every head.", default=0.5, above=0)

    def weights(self, q: Tensor, k: Tensor, mask: Mask, extra: Tensor | None = None) -> Tensor:
        """The definition, (B, H, Q, K)."""
        assert extra is not None
        keep = mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device)
        first, second = (
            masked_softmax(dot_product_scores(*half, mask), keep) for half in split_halves(q, k)
        )
        return first - extra.to(q.dtype)[:, None, None] * second

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """Fast path of `weights @ v`: two calls of torch's fused attention."""
        assert extra is not None
        first, second = (fused_attention(*half, v, mask, dropout) for half in split_halves(q, k))
        return first - extra.to(q.dtype)[:, None, None] * second

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """One product of Q×K×D for the scores of both halves, two for the values."""
        return Cost(
            multiply_adds=3 * heads * queries * keys * width,
            activations=2 * heads * queries * (width + 1),
        )

    def build_learned(self, width: int, heads: int, head_width: int) -> Factors:
        """The module with λ; its output is passed as `extra`."""
        return Factors(heads, self.start)

    def learned_cost(self, width: int, heads: int, head_width: int, keys: int) -> Cost:
        """One parameter per head."""
        return Cost(parameters=heads)

    def example_extra(self, q: Tensor, k: Tensor) -> Tensor:
        """An example of λ, for the contract tests."""
        return torch.rand(q.shape[1], dtype=q.dtype, requires_grad=True)


def split_halves(q: Tensor, k: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Queries and keys of the first and of the second half of the features."""
    middle = q.shape[-1] // 2
    return [(q[..., :middle], k[..., :middle]), (q[..., middle:], k[..., middle:])]


class Factors(Module):
    """λ of every head."""

    def __init__(self, heads: int, start: float) -> None:
        super().__init__()
        self.factors = nn.Parameter(torch.full((heads,), start))

    def forward(self, x: Tensor) -> Tensor:
        """λ, (H,); the same for every sequence."""
        return self.factors
