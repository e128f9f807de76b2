"""Sinusoidal positions (Vaswani et al., 2017).

`Sinusoidal` is the declaration in a program (position.py), `SinusoidalPositions` the torch module,
which adds to the input once. Shapes `x` are (time, features), without the batch axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.shapes import Shape
from neural.nn.lazy_torch import Module, torch
from neural.nn.position import Position

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Sinusoidal(Position):
    """Adds sines and cosines of increasing wavelength; no parameters."""

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> SinusoidalPositions:
        """A module for sequences of any length."""
        return SinusoidalPositions()


def sinusoidal_table(length: int, width: int, device: torch.device) -> Float[Tensor, "T E"]:
    """sin and cos of t / 10000^(2i/E), alternating; with odd E the last cosine is left out."""
    time = torch.arange(length, device=device, dtype=torch.float32)
    rates = torch.exp(  # 9.21… is ln(10000)
        torch.arange(0, width, 2, device=device, dtype=torch.float32) * (-9.210340371976184 / width)
    )
    angles = torch.outer(time, rates)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :width]


class SinusoidalPositions(Module):
    """Adds the sinusoidal table."""

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        """Computed in 32 bits, added in the input's precision."""
        return x + sinusoidal_table(x.shape[1], x.shape[2], x.device).to(x.dtype)
