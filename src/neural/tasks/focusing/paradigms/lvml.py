"""Latent variable marginal likelihood: which segment matters is summed out (Deng et al., 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focusing.paradigms._marginal import Marginal, renyi_loss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class Lvml(Marginal):
    """One segment that answers well is enough; the gradient is that of expectation maximisation."""

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """−log Σⱼ aⱼ pⱼ[y]."""
        return renyi_loss(given, 1.0)
