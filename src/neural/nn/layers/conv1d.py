"""Convolution over time, channels last.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size.
"""

from __future__ import annotations

from neural.language.declaration import choice_field, int_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, feature_width, numel, require_rank
from neural.nn.activations import ACTIVATION_NAMES, build_activation, saved_values_per_output
from neural.nn.convolution import (
    PADDING_MODES,
    Convolution,
    count_padded_elements,
    count_windows,
)


class Conv1D(Layer):
    """Convolution over time: a linear map of a window of positions."""

    keeps_time = False  # the padding mask of the input does not fit the output
    resizes_mask = True  # the module has `output_mask`, which converts the padding mask

    filters: int = int_field("Number of output features.")
    kernel_size: int = int_field("Number of positions in the window.", default=3)
    strides: int = int_field("Stride of the window.", default=1)
    padding: str = choice_field(
        PADDING_MODES,
        '"valid": only complete windows; "same": zeros around the edges.',
        default="valid",
    )
    activation: str = choice_field(
        ACTIVATION_NAMES,
        "Activation of the output.",
        default="linear",
        value_name="activation",
        code="E0213",
    )

    @property
    def uses_mask(self) -> bool:
        """True: the module takes the padding mask, and padding counts as zeros."""
        return True

    def shape(self, x: Shape) -> Shape:
        """The number of windows, and the filters."""
        require_rank(x, 2, "a sequence, (time, features)")
        feature_width(x)  # raises ShapeError if the width is unknown
        return (
            *count_windows(
                x[:1], (self.kernel_size,), (self.strides,), self.padding, "kernel_size"
            ),
            self.filters,
        )

    def cost(self, x: Shape) -> Cost:
        """`kernel_size · E · filters + filters` parameters.

        With "same" padding, the padded input is saved as well.
        """
        weights = self.kernel_size * feature_width(x) * self.filters
        out = self.shape(x)
        padded = (
            count_padded_elements(x, (self.kernel_size,), (self.strides,))
            if self.padding == "same"
            else 0
        )
        return Cost(
            parameters=weights + self.filters,
            multiply_adds=weights * numel(out[:1]),
            activations=saved_values_per_output(self.activation) * numel(out) + padded,
        )

    def build(self, x: Shape) -> Convolution:
        """torch's convolution, channels last."""
        same = self.padding == "same"
        activation = build_activation(self.activation)
        return Convolution(
            feature_width(x), self.filters, (self.kernel_size,), (self.strides,), same, activation
        )

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Stride 2."""
        return cls(filters=5, kernel_size=3, strides=2), (7, 3)
