"""A learned vector per position (Gehring et al., 2017; BERT, GPT-2).

`Learned` is the declaration in a program (position.py), `LearnedPositions` the torch module, which
adds to the input once. Shapes `x` are (time, features), without the batch axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import int_field
from neural.language.shapes import Shape, feature_width
from neural.nn.lazy_torch import Module, nn, torch
from neural.nn.position import Position, require_length

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Learned(Position):
    """Adds a learned vector for each position."""

    max_len: int | None = int_field(
        "Maximum sequence length; by default the input's length.", default=None
    )

    def validate(self, x: Shape, heads: int | None = None, head_width: int | None = None) -> None:
        """Raise ShapeError if the table is too short or its length unknown."""
        require_length(x, self.max_len)

    def count_parameters(self, x: Shape, heads: int | None = None) -> int:
        """One vector per position."""
        return require_length(x, self.max_len) * feature_width(x)

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> LearnedPositions:
        """A table of `max_len` vectors."""
        return LearnedPositions(require_length(x, self.max_len), feature_width(x))


class LearnedPositions(Module):
    """Adds the first rows of a learned table."""

    def __init__(self, max_length: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_length, width))
        nn.init.normal_(self.table, std=0.02)  # as GPT-2 and BERT

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        """x plus the table; ValueError for sequences longer than the table."""
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(
                f"a sequence of {x.shape[1]} is longer than the {self.table.shape[0]} learned "
                "positions"
            )
        return x + self.table[: x.shape[1]]
