"""Batch normalization (Ioffe and Szegedy, 2015), channels last.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, feature_width, numel
from neural.nn.lazy_torch import Module, nn

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class BatchNormalization(Layer):
    """Normalizes each feature to mean 0 and variance 1 over the batch, then scales and shifts."""

    epsilon: float = float_field(
        "Added to the variance, to avoid division by zero.", default=1e-5, above=0
    )
    momentum: float = float_field(
        "Weight of the current batch in the running averages.", default=0.1, above=0, at_most=1
    )

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        feature_width(x)  # raises ShapeError if the width is unknown
        return x

    def cost(self, x: Shape) -> Cost:
        """`2 · E` parameters: a scale and a shift per feature. Saves the output."""
        return Cost(parameters=2 * feature_width(x), activations=numel(x))

    def build(self, x: Shape) -> BatchNorm:
        """torch's batch norm over the last axis."""
        return BatchNorm(feature_width(x), self.epsilon, self.momentum)

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Three features."""
        return cls(), (7, 3)


class BatchNorm(Module):
    """`nn.BatchNorm1d` over the last axis, for any number of axes."""

    def __init__(self, width: int, epsilon: float, momentum: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, eps=epsilon, momentum=momentum)

    def forward(self, x: Float[Tensor, "*B E"]) -> Float[Tensor, "*B E"]:
        """The statistics of a feature are those of all positions of all examples."""
        return self.norm(x.reshape(-1, x.shape[-1])).view(x.shape)
