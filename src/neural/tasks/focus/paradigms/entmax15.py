"""1.5-entmax focus (Peters et al., 2019): between softmax and sparsemax.

The focus is the weights of the segments of an example. A paradigm (paradigm.py) is a loss that
trains the focus and a classifier of segments together.
"""

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
        """The function from scores to focus weights: that of the attention layers."""
        return entmax15
