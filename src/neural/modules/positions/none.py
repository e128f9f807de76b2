"""No positions: attention that does not know the order."""

from __future__ import annotations

from typing import ClassVar

from neural.language.shapes import Shape
from neural.modules.position import InsideAttention, Position


class None_(Position):   # the word is taken
    """Attention sees a set, not a sequence."""

    adds: ClassVar[bool] = False

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> InsideAttention:
        """Does nothing."""
        return InsideAttention()
