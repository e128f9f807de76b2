"""Layer normalization (Ba et al., 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import flag, number
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, size, width
from neural.modules.late import nn

if TYPE_CHECKING:
    from torch.nn import Module


class LayerNormalization(Layer):
    """Brings the features at every position to mean 0 and variance 1, then scales and shifts each."""

    pointwise = True

    epsilon: float = number("Added to the variance, against division by zero.", default=1e-5, above=0)
    bias: bool = flag("Shift each feature as well.", default=True)

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        width(x)
        return x

    def cost(self, x: Shape) -> Cost:
        """A scale and a shift per feature: `(1 + bias) · E` parameters; mean and deviation per position are kept."""
        return Cost(parameters=(1 + self.bias) * width(x), activations=size(x) + 2 * size(x[:-1]))

    def build(self, x: Shape) -> Module:
        """torch's, over the last axis."""
        return nn.LayerNorm(width(x), eps=self.epsilon, bias=self.bias)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Three features."""
        return cls(), (7, 3)
