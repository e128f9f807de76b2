"""Dropout (Srivastava et al., 2014)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import rate
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, size
from neural.modules.late import nn

if TYPE_CHECKING:
    from torch.nn import Module


class Dropout(Layer):
    """While training, each number is set to 0 with this probability; the others grow to make up for it."""

    pointwise = True

    dropout_rate: float = rate("Share of the numbers dropped.", aliases=("rate",))

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        return x

    def cost(self, x: Shape) -> Cost:
        """The result, and what it was multiplied with."""
        return Cost(activations=2 * size(x))

    def build(self, x: Shape) -> Module:
        """torch's."""
        return nn.Dropout(self.dropout_rate)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Half of twenty-one."""
        return cls(dropout_rate=0.5), (7, 3)
