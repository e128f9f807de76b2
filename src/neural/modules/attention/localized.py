"""Attention inside a window: neighbours only (Luong et al., 2015, section 3.2, without the learned centre)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import count
from neural.language.shapes import Cost
from neural.modules.attention.self import Self
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Localized(Mechanism):
    """Every query looks at the keys at most `window // 2` positions away."""

    window: int = count("Width of the window, the query's own position included.", default=7, shown=True)

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over the window alone."""
        return Self().weights(q, k, mask.near(self.window // 2))

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """The fused kernel under a band mask."""
        return Self().mix(q, k, v, mask.near(self.window // 2), dropout)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """That of the fused kernel, which visits all pairs and leaves most of them out."""
        return Self().cost(heads, queries, keys, width)

    @classmethod
    def tiny(cls) -> Mechanism:
        """One neighbour on either side."""
        return cls(window=3)
