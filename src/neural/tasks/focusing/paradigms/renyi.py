"""The Rényi family: hard attention at τ = 0, the marginal likelihood at τ = 1, the best segment alone at τ = ∞."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.tasks.focusing.paradigms._marginal import Marginal, renyi_loss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class Renyi(Marginal):
    """Large τ escapes sooner where there are many segments, small τ finishes sooner."""

    tau: float = number("0 is hard, 1 is the marginal likelihood, above 1 the best segments count more.", default=0.5,
                        at_least=0, at_most=100)  # fmt: skip

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """−(1/τ) log Σⱼ aⱼ pⱼ[y]^τ."""
        return renyi_loss(given, self.tau)
