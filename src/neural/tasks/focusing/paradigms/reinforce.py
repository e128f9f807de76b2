"""REINFORCE (Williams, 1992): hard attention by drawing, judged against how the other examples of the batch did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import count
from neural.modules.late import torch
from neural.tasks.focusing.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class Reinforce(Paradigm):
    """One drawn segment is read; the gradient of the focus goes by how much better it did than usual."""

    draws: int = count("Segments drawn per example.", default=1)

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """The loss of the draw; its gradient is that of the hard loss on average.

        The baseline, which is subtracted, is the mean of the other examples: it knows nothing of the draw, so there is
        no bias.
        """
        index = torch.multinomial(given.log_focus.detach().exp(), self.draws, replacement=True)
        likelihood, log_a = given.of_label(given.read(index)), given.log_focus.gather(-1, index)
        reward = likelihood.detach()
        count = len(reward)
        usual = (reward.sum(dim=0) - reward) / max(1, count - 1)
        advantage = (reward - usual) * (log_a - log_a.detach())   # 0, with a gradient
        return -(likelihood + advantage).mean(dim=-1)

    def predict(self, given: Segments) -> Float[Tensor, "B C"]:
        """log Σⱼ aⱼ pⱼ, exactly."""
        return given.mixture(self.focus(given.scores))

    def calls(self, segments: int, samples: int) -> int:
        """As many as are drawn."""
        return self.draws
