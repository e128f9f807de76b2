"""Sparsemax focus (Martins and Astudillo, 2016): Euclidean projection onto the simplex."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neural.nn.attention.sparsemax import sparsemax
from neural.tasks.focus.paradigms._sparse import SparseMarginalParadigm

if TYPE_CHECKING:
    from torch import Tensor


class Sparsemax(SparseMarginalParadigm):
    """Marginal likelihood with a sparsemax focus; classifies only its support."""

    def projection(self) -> Callable[[Tensor], Tensor]:
        """Sparsemax, as in attention."""
        return sparsemax
