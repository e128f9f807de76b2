"""Sparsemax (Martins and Astudillo, 2016) as the focus: the weights nearest to the scores, most of them 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neural.modules.attention.sparsemax import sparsemax
from neural.tasks.focusing.paradigms._sparse import SparseMarginal

if TYPE_CHECKING:
    from torch import Tensor


class Sparsemax(SparseMarginal):
    """Marginal likelihood with a sparse focus: only its support is read."""

    def projection(self) -> Callable[[Tensor], Tensor]:
        """As in attention."""
        return sparsemax
