"""Batch normalization (Ioffe and Szegedy, 2015), channels last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, size, width
from neural.modules.late import Module, nn

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class BatchNormalization(Layer):
    """Brings every feature to mean 0 and variance 1 over the batch, then scales and shifts it."""

    epsilon: float = number("Added to the variance, against division by zero.", default=1e-5, above=0)
    momentum: float = number("Weight of the newest batch in the running averages.", default=0.1, above=0, at_most=1)

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        width(x)
        return x

    def cost(self, x: Shape) -> Cost:
        """A scale and a shift per feature: `2 · E` parameters."""
        return Cost(parameters=2 * width(x), activations=size(x))

    def build(self, x: Shape) -> BatchNorm:
        """torch's, over the last axis."""
        return BatchNorm(width(x), self.epsilon, self.momentum)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Three features."""
        return cls(), (7, 3)


class BatchNorm(Module):
    """`nn.BatchNorm1d` over the last axis, whatever stands before it."""

    def __init__(self, width: int, epsilon: float, momentum: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, eps=epsilon, momentum=momentum)

    def forward(self, x: Float[Tensor, "*B E"]) -> Float[Tensor, "*B E"]:
        """All positions of all examples make the statistics of a feature."""
        return self.norm(x.reshape(-1, x.shape[-1])).view(x.shape)
