"""Gaussian noise as regularization (Sietsma and Dow, 1991).

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, numel
from neural.nn.lazy_torch import Module, torch

if TYPE_CHECKING:
    from torch import Tensor


class GaussianNoise(Layer):
    """Adds Gaussian noise to each value during training, against overfitting."""

    pointwise = True  # each position is computed alone

    stddev: float = float_field("Standard deviation of the noise.", above=0)

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        return x

    def cost(self, x: Shape) -> Cost:
        """Saves the output."""
        return Cost(activations=numel(x))

    def build(self, x: Shape) -> Module:
        """The module, without parameters."""
        return GaussianNoiseModule(self.stddev)

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Standard deviation 0.1."""
        return cls(stddev=0.1), (7, 3)


class GaussianNoiseModule(Module):
    """Adds noise in training mode only."""

    def __init__(self, stddev: float) -> None:
        super().__init__()
        self.stddev = stddev

    def forward(self, x: Tensor) -> Tensor:
        """x plus noise in training mode, x in evaluation mode."""
        return x + self.stddev * torch.randn_like(x) if self.training else x
