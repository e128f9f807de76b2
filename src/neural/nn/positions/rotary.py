"""Rotary positions (Su et al., 2021): queries and keys are rotated by their positions.

The product of a rotated query and a rotated key depends on their distance only.

`Rotary` is the declaration in a program (position.py), `RotaryPositions` the torch module, which is
applied inside every attention. Axes: B batch, H heads, T time, D head width, P = D / 2 pairs of
features. A ShapeError is reported to the user with its code; the check of later layers continues
with the shape `assumed_output`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import float_field
from neural.language.shapes import Shape, ShapeError
from neural.nn.lazy_torch import torch
from neural.nn.position import AttentionPositions, Position

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Rotary(Position):
    """Rotates pairs of query and key features by angles proportional to the position."""

    is_additive: ClassVar[bool] = False  # rotates queries and keys; adds nothing to the input

    rotary_base: float = float_field(
        "Wavelength of the slowest pair, in positions, over 2π.", default=10000.0, above=1
    )

    def validate(self, x: Shape, heads: int | None = None, head_width: int | None = None) -> None:
        """Raise ShapeError for an odd head width: features are rotated in pairs."""
        if head_width is not None and head_width % 2:
            raise ShapeError(
                "E0218",
                f"rotary positions rotate pairs of features; a head width of {head_width} is odd",
                at=["positional", "num_heads"],
                assumed_output=x,
                helps=["choose an even head width"],
            )

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> RotaryPositions:
        """The module that rotates queries and keys."""
        return RotaryPositions(self.rotary_base)


class RotaryPositions(AttentionPositions):
    """Rotates feature i of a head together with feature i + D/2."""

    def __init__(self, base: float) -> None:
        super().__init__()
        self.base = base

    def rotate(self, x: Float[Tensor, "B H T D"], offset: int) -> Float[Tensor, "B H T D"]:
        """Queries or keys rotated: pair i by the angle position × base^(-2i/D).

        The first is at position `offset`.
        """
        half = x.shape[-1] // 2
        cos, sin = self.cos_sin(x, offset)
        left, right = x[..., :half], x[..., half:]
        return torch.cat((left * cos - right * sin, left * sin + right * cos), dim=-1)

    def cos_sin(
        self, x: Float[Tensor, "B H T D"], offset: int
    ) -> tuple[Float[Tensor, "T P"], Float[Tensor, "T P"]]:
        """Cosine and sine (position, pair) for queries or keys `x`, the first at `offset`."""
        half = x.shape[-1] // 2
        positions = torch.arange(offset, offset + x.shape[-2], device=x.device, dtype=torch.float32)
        rates = self.base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
        angles = torch.outer(positions, rates)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)
