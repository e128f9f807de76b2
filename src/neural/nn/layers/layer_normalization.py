"""Layer normalization (Ba et al., 2016).

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import bool_field, float_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, feature_width, numel
from neural.nn.lazy_torch import nn

if TYPE_CHECKING:
    from torch.nn import Module


class LayerNormalization(Layer):
    """Normalizes each position's features to mean 0 and variance 1, then scales and shifts them."""

    pointwise = True  # each position is computed alone

    epsilon: float = float_field(
        "Added to the variance, to avoid division by zero.", default=1e-5, above=0
    )
    bias: bool = bool_field("Also shift each feature.", default=True)

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        feature_width(x)  # raises ShapeError if the width is unknown
        return x

    def cost(self, x: Shape) -> Cost:
        """`(1 + bias) · E` parameters.

        Saves the output, and the mean and the reciprocal standard deviation of each position.
        """
        return Cost(
            parameters=(1 + self.bias) * feature_width(x), activations=numel(x) + 2 * numel(x[:-1])
        )

    def build(self, x: Shape) -> Module:
        """torch's layer norm over the last axis."""
        return nn.LayerNorm(feature_width(x), eps=self.epsilon, bias=self.bias)

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Three features."""
        return cls(), (7, 3)
