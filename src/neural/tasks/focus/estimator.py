"""Base class of estimators: select few segments to classify, with weights, instead of all m.

The losses of focus models contain sums over the m segments of an example, weighted by the focus a
(Σⱼ aⱼ = 1). An estimator replaces such a sum by a weighted sum over K selected segments, so that
the classifier runs K times instead of m times. It is used in training only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import RegistryEntry

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

NO_SEGMENT = -1
"""Padding in the indices of an example for which fewer segments are selected than for others."""


class Estimator(RegistryEntry):
    """Base class: selects the segments to classify, and their weights.

    A `RegistryEntry` is a class that users name in lower case with its arguments, such as
    `topk(tail=0.5)`.
    """

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """Indices i of the segments to classify (None: all), and their log weights log w.

        `samples` is the requested K. Entries with index NO_SEGMENT are unused.

        For any function f of segments, E[Σₖ wₖ f(iₖ)] = Σⱼ aⱼ f(j). The expected gradient with
        respect to the focus is the gradient of that sum. So the sums are estimated without bias.
        A loss that is −log of such a sum is too large on average; this bias falls with K.
        """
        raise NotImplementedError

    def max_segments(self, segments: int, samples: int) -> int:
        """Largest number of segments selected per example of `segments` segments."""
        return min(samples, segments)
