"""A fully connected layer, on the last axis of anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import choice, count, flag
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, size, width
from neural.modules.activations import NAMES, activation, kept
from neural.modules.initial import INITS, start
from neural.modules.late import Module, nn

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Dense(Layer):
    """Weighted sums of the features, at every position alike, then an activation."""

    pointwise = True

    units: int = count("Width of the output.")
    activation: str = choice(NAMES, "Applied to the sums.", default="linear", noun="activation", code="E0213")
    bias: bool = flag("Add a learned number to each sum.", default=True, aliases=("use_bias",))
    init: str = choice(INITS, "How the weights begin.", default="torch")

    def shape(self, x: Shape) -> Shape:
        """Only the last size changes."""
        width(x)
        return (*x[:-1], self.units)

    def cost(self, x: Shape) -> Cost:
        """One weight per input and unit, used once per position: `units · (E + bias)` parameters."""
        positions = size(x[:-1])
        return Cost(
            parameters=self.units * (width(x) + self.bias),
            multiply_adds=positions * width(x) * self.units,
            activations=kept(self.activation) * positions * self.units,
        )

    def build(self, x: Shape) -> Linear:
        """A linear map and the activation."""
        return Linear(width(x), self.units, self.activation, bias=self.bias, init=self.init)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Three features to five."""
        return cls(units=5, activation="relu"), (7, 3)


class Linear(Module):
    """x·W + b on the last axis, then an activation."""

    def __init__(
        self, inputs: int, units: int, activation_name: str, bias: bool = True, init: str = "torch"
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, units, bias=bias)
        start(self.linear, init)
        self.activation = activation(activation_name)

    def forward(self, x: Float[Tensor, "*B E"]) -> Float[Tensor, "*B units"]:
        """The same at every position."""
        return self.activation(self.linear(x))
