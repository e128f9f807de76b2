"""No positional encoding: attention ignores the order. A program names it "none"."""

from __future__ import annotations

from typing import ClassVar

from neural.language.shapes import Shape
from neural.nn.position import AttentionPositions, Position


class None_(Position):  # `None` is a keyword
    """No positional encoding: attention to a set, not a sequence."""

    is_additive: ClassVar[bool] = False  # nothing is added to the input

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> AttentionPositions:
        """Positions that change nothing."""
        return AttentionPositions()
