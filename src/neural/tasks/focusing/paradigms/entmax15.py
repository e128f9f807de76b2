"""1.5-entmax (Peters et al., 2019) as the focus: half-way between softmax and sparsemax."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neural.modules.attention.entmax15 import entmax15
from neural.tasks.focusing.paradigms._sparse import SparseMarginal

if TYPE_CHECKING:
    from torch import Tensor


class Entmax15(SparseMarginal):
    """Marginal likelihood with a focus that is smooth near the best and 0 far from it."""

    def projection(self) -> Callable[[Tensor], Tensor]:
        """As in attention."""
        return entmax15
