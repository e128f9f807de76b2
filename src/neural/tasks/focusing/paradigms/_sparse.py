"""Marginal likelihood under a focus that is 0 almost everywhere: only the segments in its support are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neural.modules.late import torch
from neural.tasks.focusing.paradigm import Paradigm
from neural.tasks.focusing.segments import NOWHERE, in_digits

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


class SparseMarginal(Paradigm):
    """Base: −log Σⱼ aⱼ pⱼ[y] over the support, which the scores decide; exact, and cheaper the surer the focus is."""

    def focus(self, scores: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """What is 4 or more below the best gets nothing whatever it is: so sums of squares stay small."""
        near = (scores - scores.amax(dim=-1, keepdim=True).detach()).clamp(min=-4.0)
        return self.projection()(near)

    def projection(self) -> Callable[[Tensor], Tensor]:
        """Scores → weights."""
        raise NotImplementedError

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """The classifier reads what has some focus, and nothing else."""
        return -given.of_label(self.predict(given))

    def predict(self, given: Segments) -> Float[Tensor, "B C"]:
        """The rows of the support go through the classifier together, then back to their examples."""
        a = self.focus(given.scores)
        example, segment = (a > 0).nonzero(as_tuple=True)
        log_p = in_digits(given.logits_of(example, segment)).log_softmax(dim=-1)
        part = log_p + a[example, segment].log().unsqueeze(-1)
        whole = part.new_full((*a.shape, part.shape[-1]), NOWHERE).index_put((example, segment), part)
        return torch.logsumexp(whole, dim=1)

    def calls(self, segments: int, samples: int) -> int:
        """At most all of them, at the beginning."""
        return segments
