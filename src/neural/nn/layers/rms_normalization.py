"""Root-mean-square normalization (Zhang and Sennrich, 2019).

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
from neural.nn.lazy_torch import nn

if TYPE_CHECKING:
    from torch.nn import Module


class RMSNormalization(Layer):
    """Divides each position's features by their root mean square, then scales them."""

    pointwise = True  # each position is computed alone

    epsilon: float = float_field(
        "Added to the mean square, to avoid division by zero.", default=1e-6, above=0
    )

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        feature_width(x)  # raises ShapeError if the width is unknown
        return x

    def cost(self, x: Shape) -> Cost:
        """`E` parameters: a scale per feature.

        Saves two tensors of the shape of `x`, the output and the features before the scale, and the
        reciprocal root mean square of each position.
        """
        return Cost(parameters=feature_width(x), activations=2 * numel(x) + numel(x[:-1]))

    def build(self, x: Shape) -> Module:
        """torch's RMS norm over the last axis."""
        return nn.RMSNorm(feature_width(x), eps=self.epsilon)

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Three features."""
        return cls(), (7, 3)
