"""What every way of telling positions promises: added to the input once, or at work inside each attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from neural.language.declaration import Named
from neural.language.shapes import Misfit, Shape
from neural.modules.late import Module

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Position(Named):
    """How a transformer learns where things are."""

    adds: ClassVar[bool] = True
    """Added to the input before the first block; otherwise it works inside every attention."""

    def fits(self, x: Shape, heads: int | None = None, head_width: int | None = None) -> None:
        """Raise Misfit where it cannot work on such sequences."""

    def parameters(self, x: Shape, heads: int | None = None) -> int:
        """Learned numbers."""
        return 0

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> Any:
        """A module: `forward(x)` adds; or an `InsideAttention`."""
        raise NotImplementedError

    @classmethod
    def tiny(cls) -> Position:
        """An instance for the contract tests."""
        return cls()


class InsideAttention(Module):
    """Positions that act on queries, keys or scores."""

    def rotate(self, x: Float[Tensor, "B H T D"], first: int) -> Float[Tensor, "B H T D"]:
        """Queries or keys whose first one stands at position `first`, turned by their positions."""
        return x

    def bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "H Q K"] | None:
        """What is added to the scores."""
        return None

    def key_bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "1 H K"] | None:
        """What is added to all scores of a key, where that says the same: it costs less than `bias`."""
        return None


def known_length(x: Shape, max_len: int | None) -> int:
    """How many positions a learned table needs; Misfit where nobody says."""
    if max_len is None and isinstance(x[0], str):
        raise Misfit(
            "E0307", "learned positions need a longest sequence", helps=["say it: `max_len=512`"], assume=x
        )
    if max_len is not None and isinstance(x[0], int) and x[0] > max_len:
        raise Misfit(
            "E0311", f"sequences have {x[0]} positions, `max_len` allows {max_len}", at=["max_len"], assume=x
        )
    return max_len if max_len is not None else int(x[0])
