"""Base class of estimators: a weighted sample of segments that represents the focus on all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import LowercaseDeclaration

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

UNREAD = -1
"""Padding in the index of an example that reads fewer segments than others of its batch."""


class Estimator(LowercaseDeclaration):
    """Base class: selects the segments that the classifier reads, and their weights."""

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """Indices of the segments to read (None: all; UNREAD: padding), and log weights.

        For any function f of segments, E[Σₖ wₖ f(iₖ)] = Σⱼ aⱼ f(j), and the expected gradient with
        respect to the focus is the gradient of that sum: the sums in hard and marginal losses are
        estimated without bias. Their logarithm is not: −log of an estimate is too large on
        average; the bias falls with the number of samples.
        """
        raise NotImplementedError

    def segments_read(self, segments: int, samples: int) -> int:
        """Largest number of segments read per example."""
        return min(samples, segments)
