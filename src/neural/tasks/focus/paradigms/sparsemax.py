"""Sparsemax focus (Martins and Astudillo, 2016): Euclidean projection onto the simplex.

The focus is the weights of the segments of an example. A paradigm (paradigm.py) is a loss that
trains the focus and a classifier of segments together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neural.nn.attention.sparsemax import sparsemax
from neural.tasks.focus.paradigms._sparse import SparseMarginalParadigm

if TYPE_CHECKING:
    from torch import Tensor


class Sparsemax(SparseMarginalParadigm):
    """Marginal likelihood with a sparsemax focus; segments of weight 0 are not classified."""

    def projection(self) -> Callable[[Tensor], Tensor]:
        """The function from scores to focus weights: that of the attention layers."""
        return sparsemax
