"""What every estimator promises: a few segments with weights that stand for the focus on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import Named

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

UNREAD = -1
"""In place of a segment's number: an example that needs fewer than others of its batch."""


class Estimator(Named):
    """Which segments the classifier reads, and how much each counts."""

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """Numbers of the segments to read (None: all; UNREAD: none here), and logarithms of weights w.

        For any f of the segments, the mean over draws of Σₖ wₖ f(iₖ) is Σⱼ aⱼ f(j), and the mean of its gradient by
        the focus is the gradient of that: the sums that hard and marginal losses are made of are estimated without
        bias. The logarithm of such a sum is not: −log of an estimate is too large, by less the more is read.
        """
        raise NotImplementedError

    def calls(self, segments: int, samples: int) -> int:
        """How many segments of an example are read, at most."""
        return min(samples, segments)
