"""Flattening of each example.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, ShapeError, format_shape, numel
from neural.nn.lazy_torch import nn

if TYPE_CHECKING:
    from torch.nn import Module


class Flatten(Layer):
    """Flattens each example to one axis."""

    keeps_time = False  # the padding mask of the input does not fit the output

    def shape(self, x: Shape) -> Shape:
        """The product of all sizes; ShapeError if one is unknown."""
        if any(isinstance(dim, str) for dim in x):
            raise ShapeError(
                "E0307",
                f"`Flatten` needs known sizes, but {format_shape(x)} arrives",
                helps=["`GlobalAveragePooling1D` takes sequences of any length"],
            )
        return (numel(x),)

    def cost(self, x: Shape) -> Cost:
        """Nothing: it is a view."""
        return Cost()

    def build(self, x: Shape) -> Module:
        """torch's flatten."""
        return nn.Flatten()

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """(7, 3) to 21."""
        return cls(), (7, 3)
