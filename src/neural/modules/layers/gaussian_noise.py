"""Gaussian noise (Sietsma and Dow, 1991): training examples that are never twice the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, size
from neural.modules.late import Module, torch

if TYPE_CHECKING:
    from torch import Tensor


class GaussianNoise(Layer):
    """While training, adds noise to each number: what is never twice the same is not learned by heart."""

    pointwise = True

    stddev: float = number("Standard deviation of the noise.", above=0)

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        return x

    def cost(self, x: Shape) -> Cost:
        """The result."""
        return Cost(activations=size(x))

    def build(self, x: Shape) -> Module:
        """Nothing to learn."""
        return Noise(self.stddev)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """A little."""
        return cls(stddev=0.1), (7, 3)


class Noise(Module):
    """Added in training alone."""

    def __init__(self, stddev: float) -> None:
        super().__init__()
        self.stddev = stddev

    def forward(self, x: Tensor) -> Tensor:
        """As it was, once trained."""
        return x + self.stddev * torch.randn_like(x) if self.training else x
