"""The loss as the exact sum over all segments, weighted by the focus.

An estimator (estimator.py) selects the segments of an example that are classified in training. This
one selects all.
"""

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
        """None, which means all segments, and the log focus as their log weights."""
        return None, log_focus

    def max_segments(self, segments: int, samples: int) -> int:
        """All segments."""
        return segments
