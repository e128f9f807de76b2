"""Straight-through Gumbel (Jang et al., 2017): one segment is drawn, the gradient is that of a blend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.modules.late import functional
from neural.tasks.focusing.paradigms.soft import Soft

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class GumbelStraightThrough(Soft):
    """The classifier reads one drawn segment as it is; its gradient reaches the focus as if all had been blended."""

    temperature: float = number("Of the blend that the gradient goes through.", default=1.0, above=0)

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """−log softmax(g(x_j))[y], j drawn by the focus; biased, of little variance."""
        drawn = functional.gumbel_softmax(given.scores, tau=self.temperature, hard=True, dim=-1)
        return -given.of_label(given.blended(drawn))
