"""Hard attention (Xu et al., 2015): the expected loss of a classifier that reads one segment, drawn by the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focusing.paradigms._marginal import Marginal, renyi_loss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class Hard(Marginal):
    """Each segment must answer alone: slow to begin, then quick to commit. Unbiased with every estimator."""

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """−Σⱼ aⱼ log pⱼ[y]."""
        return renyi_loss(given, 0.0)
