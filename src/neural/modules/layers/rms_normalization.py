"""Root-mean-square normalization (Zhang and Sennrich, 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, size, width
from neural.modules.late import nn

if TYPE_CHECKING:
    from torch.nn import Module


class RMSNormalization(Layer):
    """Brings the mean square of the features at every position to 1, then scales each; the mean stays."""

    pointwise = True

    epsilon: float = number("Added to the mean square, against division by zero.", default=1e-6, above=0)

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        width(x)
        return x

    def cost(self, x: Shape) -> Cost:
        """A scale per feature: `E` parameters; kept are the features before it and the root per position."""
        return Cost(parameters=width(x), activations=2 * size(x) + size(x[:-1]))

    def build(self, x: Shape) -> Module:
        """torch's, over the last axis."""
        return nn.RMSNorm(width(x), eps=self.epsilon)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Three features."""
        return cls(), (7, 3)
