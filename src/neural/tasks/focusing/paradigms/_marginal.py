"""The Rényi family from hard attention over the marginal likelihood to the best segment: one formula for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tasks.focusing.estimator import UNREAD
from neural.tasks.focusing.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments

NEARLY_HARD = 1e-3
"""Below this the logarithm loses its digits, and the limit is as good."""


class Marginal(Paradigm):
    """Base of paradigms whose classifier reads segments one by one and whose predictions are mixed."""

    estimated: ClassVar[bool] = True

    def predict(self, given: Segments) -> Float[Tensor, "B C"]:
        """log Σⱼ aⱼ pⱼ."""
        return given.mixture(self.focus(given.scores))

    def calls(self, segments: int, samples: int) -> int:
        """Those that the estimator reads."""
        return samples


def renyi_loss(given: Segments, tau: float) -> Float[Tensor, " B"]:
    """−(1/τ) log Σⱼ aⱼ pⱼ[y]^τ; the limit −Σⱼ aⱼ log pⱼ[y] at τ = 0. With the push of the background, where asked."""
    index, log_w = given.chosen()
    log_p = given.read(index)
    likelihood = given.of_label(log_p)
    if tau < NEARLY_HARD:
        loss = -(log_w.exp() * likelihood).sum(dim=-1)
    else:
        loss = -torch.logsumexp(log_w + tau * likelihood, dim=-1) / tau
    return loss + given.background * undecided(given, index, log_p) if given.background else loss


def undecided(
    given: Segments, index: Int[Tensor, "B K"] | None, log_p: Float[Tensor, "B K C"]
) -> Float[Tensor, " B"]:
    """Cross-entropy of the segments read with no class at all, each as much as it is not in focus.

    Without it, background may be taken for the class that the focus finds last: right, for the wrong reason.
    """
    away = 1 - given.log_focus.detach().exp()
    if index is not None:
        away = away.gather(-1, index.clamp(min=0)) * (index != UNREAD)
    return -(away * log_p.mean(dim=-1)).sum(dim=-1) / away.sum(dim=-1).clamp(min=1e-6)
