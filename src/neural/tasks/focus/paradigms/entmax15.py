"""1.5-entmax focus (Peters et al., 2019): between softmax and sparsemax."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neural.nn.attention.entmax15 import entmax15
from neural.tasks.focus.paradigms._sparse import SparseMarginalParadigm

if TYPE_CHECKING:
    from torch import Tensor


class Entmax15(SparseMarginalParadigm):
    """Marginal likelihood with a 1.5-entmax focus: smooth near the best segment, 0 far from it."""

    def projection(self) -> Callable[[Tensor], Tensor]:
        """1.5-entmax, as in attention."""
        return entmax15
