"""Rotary positions (Su et al., 2021): queries and keys turned by their position, so that scores see distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import number
from neural.language.shapes import Misfit, Shape
from neural.modules.late import torch
from neural.modules.position import InsideAttention, Position

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Rotary(Position):
    """Turns pairs of features by an angle that grows with the position; nothing is learned."""

    adds: ClassVar[bool] = False

    rotary_base: float = number("Wavelength of the slowest pair, in positions, over 2π.", default=10000.0, above=1)

    def fits(self, x: Shape, heads: int | None = None, head_width: int | None = None) -> None:
        """Features are turned in pairs."""
        if head_width is not None and head_width % 2:
            raise Misfit(
                "E0218", f"rotary positions turn pairs of features; a head of {head_width} has one left over",
                at=["positional", "num_heads"], assume=x, helps=["choose heads of an even width"],
            )  # fmt: skip

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> RotaryPositions:
        """One for queries and keys."""
        return RotaryPositions(self.rotary_base)


class RotaryPositions(InsideAttention):
    """Turns the first half of a head's features against the second."""

    def __init__(self, base: float) -> None:
        super().__init__()
        self.base = base

    def rotate(self, x: Float[Tensor, "B H T D"], first: int) -> Float[Tensor, "B H T D"]:
        """By position × base^(-2i/D)."""
        half = x.shape[-1] // 2
        cos, sin = self.angles(x, first)
        left, right = x[..., :half], x[..., half:]
        return torch.cat((left * cos - right * sin, left * sin + right * cos), dim=-1)

    def angles(self, x: Float[Tensor, "B H T D"], first: int) -> tuple[Float[Tensor, "T P"], Float[Tensor, "T P"]]:
        """Cosine and sine for every position and pair."""
        half = x.shape[-1] // 2
        time = torch.arange(first, first + x.shape[-2], device=x.device, dtype=torch.float32)
        rates = self.base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
        angles = torch.outer(time, rates)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)
