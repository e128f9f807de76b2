"""Exact sums: the classifier reads every segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focus.estimator import Estimator

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Exact(Estimator):
    """All segments, weighted by their focus."""

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[None, Float[Tensor, "B m"]]:
        """All segments."""
        return None, log_focus

    def segments_read(self, segments: int, samples: int) -> int:
        """All segments."""
        return segments
