"""Base classes of positional encodings: added to the input once, or applied in each attention.

`Position` is the declaration that a `.neural` program names, in lowercase, with its arguments; its
`build` creates the torch module. An encoding that is applied in each attention builds an
`AttentionPositions`. Shapes `x` are (time, features), without the batch axis.

Tensor axes: B batch, H heads, Q queries, K keys, T time, D head width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from neural.language.declaration import RegistryEntry
from neural.language.shapes import Shape, ShapeError
from neural.nn.lazy_torch import Module

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Position(RegistryEntry):
    """Base class of positional encodings."""

    is_additive: ClassVar[bool] = True
    """Whether it is added to the input once, before the first transformer block.

    Otherwise it is applied inside every attention.
    """

    def validate(self, x: Shape, heads: int | None = None, head_width: int | None = None) -> None:
        """Raise ShapeError if the encoding does not support sequences of this shape."""

    def count_parameters(self, x: Shape, heads: int | None = None) -> int:
        """Number of learned parameters."""
        return 0

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> Any:
        """A module whose `forward(x)` adds the encoding if `is_additive`.

        Otherwise an `AttentionPositions` for `heads` heads, in causal attention or not.
        """
        raise NotImplementedError

    @classmethod
    def example(cls) -> Position:
        """An instance for the tests that run on every registered encoding."""
        return cls()


class AttentionPositions(Module):
    """Base class of encodings inside attention. The base class itself changes nothing."""

    def rotate(self, x: Float[Tensor, "B H T D"], offset: int) -> Float[Tensor, "B H T D"]:
        """Queries or keys rotated by their positions `offset`, `offset` + 1, …"""
        return x

    def bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "H Q K"] | None:
        """Bias added to the scores q·kᵀ / √D; `keys` is the number of keys."""
        return None

    def key_bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "1 H K"] | None:
        """Bias added to the scores of all queries for a key; None to use `bias` instead.

        An encoding whose bias depends only on the key, up to a constant per query (which cancels in
        the softmax), returns it here: attention adds it at less cost than `bias`.
        """
        return None


def require_length(x: Shape, max_len: int | None) -> int:
    """Number of positions of a learned table: `max_len`, by default the length of the input `x`.

    Raises ShapeError if both are unknown (an open size is a string), or if `max_len` is too small.
    """
    if max_len is None and isinstance(x[0], str):
        raise ShapeError(
            "E0307",
            "learned positions need a maximum sequence length",
            helps=["set it: `max_len=512`"],
            assumed_output=x,
        )
    if max_len is not None and isinstance(x[0], int) and x[0] > max_len:
        raise ShapeError(
            "E0311",
            f"sequences have {x[0]} positions, `max_len` allows {max_len}",
            at=["max_len"],
            assumed_output=x,
        )
    return max_len if max_len is not None else int(x[0])
