"""Variational attention (Deng et al., 2018): while learning, a third network that sees the label says where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import functional
from neural.tasks.focusing.paradigms._marginal import Marginal

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class Variational(Marginal):
    """A bound on the marginal likelihood, tight where the informed focus is the true posterior."""

    informed: ClassVar[bool] = True

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """−Σⱼ qⱼ (log pⱼ[y] + log aⱼ − log qⱼ): never below that of LVML, and equal to it at q = a p[y] / Σ a p[y].

        An estimator draws by q, which knows the label: it finds the segment before the focus does.
        """
        log_q = functional.log_softmax(given.informed_scores, dim=-1)
        index, log_w = given.estimator.choose(log_q, given.samples)
        gap = given.log_focus - log_q
        gap = gap if index is None else gap.gather(-1, index.clamp(min=0))
        return -(log_w.exp() * (given.of_label(given.read(index)) + gap)).sum(dim=-1)
