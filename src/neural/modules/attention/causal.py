"""Causal attention (Vaswani et al., 2017; GPT): nobody looks ahead, whatever the layer around it says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Cost
from neural.modules.attention.self import Self, fused
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Causal(Mechanism):
    """Every query looks at the keys up to its own position."""

    self_attention_only: ClassVar[bool] = True

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over what came before."""
        return Self().weights(q, k, self.as_softmax(q, k, mask))

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """The fused kernel, which skips what lies ahead."""
        return fused(q, k, v, self.as_softmax(q, k, mask), dropout)

    def as_softmax(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Mask:
        """Nobody looks ahead."""
        return replace(mask, causal=True)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Counted like full attention; the kernel skips up to half of it."""
        return Self().cost(heads, queries, keys, width)
