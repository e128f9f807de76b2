"""Fully connected layer on the last axis.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import bool_field, choice_field, int_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, feature_width, numel
from neural.nn.activations import ACTIVATION_NAMES, build_activation, saved_values_per_output
from neural.nn.initializers import INITIALIZERS, init_weights
from neural.nn.lazy_torch import Module, nn

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Dense(Layer):
    """Linear map of the features, the same at every position, then an activation."""

    pointwise = True  # each position is computed alone

    units: int = int_field("Width of the output.")
    activation: str = choice_field(
        ACTIVATION_NAMES,
        "Activation of the output.",
        default="linear",
        value_name="activation",
        code="E0213",
    )
    bias: bool = bool_field("Add a learned bias.", default=True, aliases=("use_bias",))
    init: str = choice_field(INITIALIZERS, "Weight initialization.", default="torch")

    def shape(self, x: Shape) -> Shape:
        """The input's shape with `units` as last size."""
        feature_width(x)  # raises ShapeError if the width is unknown
        return (*x[:-1], self.units)

    def cost(self, x: Shape) -> Cost:
        """`units · (E + bias)` parameters, used once per position."""
        positions = numel(x[:-1])
        return Cost(
            parameters=self.units * (feature_width(x) + self.bias),
            multiply_adds=positions * feature_width(x) * self.units,
            activations=saved_values_per_output(self.activation) * positions * self.units,
        )

    def build(self, x: Shape) -> DenseModule:
        """Linear map and activation."""
        return DenseModule(
            feature_width(x), self.units, self.activation, bias=self.bias, init=self.init
        )

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Three features to five, with ReLU."""
        return cls(units=5, activation="relu"), (7, 3)


class DenseModule(Module):
    """x·W + b on the last axis, then an activation."""

    def __init__(
        self,
        in_features: int,
        units: int,
        activation_name: str,
        bias: bool = True,
        init: str = "torch",
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, units, bias=bias)
        init_weights(self.linear, init)
        self.activation = build_activation(activation_name)

    def forward(self, x: Float[Tensor, "*B E"]) -> Float[Tensor, "*B units"]:
        """The same map at every position."""
        return self.activation(self.linear(x))
