"""Dropout (Srivastava et al., 2014).

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import rate_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, numel
from neural.nn.lazy_torch import nn

if TYPE_CHECKING:
    from torch.nn import Module


class Dropout(Layer):
    """Sets each value to 0 with this probability during training and scales up the others."""

    pointwise = True  # each position is computed alone

    dropout_rate: float = rate_field("Dropout probability.", aliases=("rate",))

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        return x

    def cost(self, x: Shape) -> Cost:
        """Saves the output and the dropout mask."""
        return Cost(activations=2 * numel(x))

    def build(self, x: Shape) -> Module:
        """torch's dropout."""
        return nn.Dropout(self.dropout_rate)

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Probability 0.5."""
        return cls(dropout_rate=0.5), (7, 3)
