"""What every attention mechanism promises: defined by `weights`, run by `mix`. The contract proves them equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import Named
from neural.language.shapes import Cost
from neural.modules.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Mechanism(Named):
    """A way to decide how much each query looks at each key."""

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask
    ) -> Float[Tensor, "B H Q K"]:
        """How much each query looks at each key. Rows sum to 1; masked positions are 0; an empty row is all 0."""
        raise NotImplementedError

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """`weights(q, k, mask) @ v`, by the fastest exact way known; `dropout` drops weights."""
        raise NotImplementedError

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Of `mix` alone, for one example: the projections around it belong to the layer."""
        raise NotImplementedError

    @classmethod
    def tiny(cls) -> Mechanism:
        """An instance for the contract tests."""
        return cls()
