"""No estimate: the classifier reads every segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focusing.estimator import Estimator

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Exact(Estimator):
    """All segments, each with the focus it has."""

    def choose(self, log_focus: Float[Tensor, "B m"], samples: int) -> tuple[None, Float[Tensor, "B m"]]:
        """Nothing is left out."""
        return None, log_focus

    def calls(self, segments: int, samples: int) -> int:
        """All of them."""
        return segments
