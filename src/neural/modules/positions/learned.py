"""A learned vector per position (Gehring et al., 2017; BERT, GPT-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import count
from neural.language.shapes import Shape, width
from neural.modules.late import Module, nn, torch
from neural.modules.position import Position, known_length

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Learned(Position):
    """A table with a vector for each position."""

    max_len: int | None = count("Longest sequence; by default the input's length.", default=None)

    def fits(self, x: Shape, heads: int | None = None, head_width: int | None = None) -> None:
        """The table must be long enough."""
        known_length(x, self.max_len)

    def parameters(self, x: Shape, heads: int | None = None) -> int:
        """One vector per position."""
        return known_length(x, self.max_len) * width(x)

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> LearnedPositions:
        """A table as long as the longest sequence."""
        return LearnedPositions(known_length(x, self.max_len), width(x))


class LearnedPositions(Module):
    """Adds the first rows of a table."""

    def __init__(self, longest: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(longest, width))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        """Sequences longer than the table are refused."""
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(f"a sequence of {x.shape[1]} is longer than the {self.table.shape[0]} learned positions")
        return x + self.table[: x.shape[1]]
