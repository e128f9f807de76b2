"""Convolution over images, channels last.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size.
"""

from __future__ import annotations

from neural.language.declaration import choice_field, int_field, int_pair_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, feature_width, numel, require_rank
from neural.nn.activations import ACTIVATION_NAMES, build_activation, saved_values_per_output
from neural.nn.convolution import (
    PADDING_MODES,
    Convolution,
    count_padded_elements,
    count_windows,
)


class Conv2D(Layer):
    """Convolution over images: a linear map of a sliding window."""

    keeps_time = False  # the padding mask of the input does not fit the output

    filters: int = int_field("Number of output features.")
    kernel_size: tuple[int, int] = int_pair_field("Height and width of the window.", default=(3, 3))
    strides: tuple[int, int] = int_pair_field("Stride of the window.", default=(1, 1))
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

    def shape(self, x: Shape) -> Shape:
        """The number of windows, and the filters."""
        require_rank(x, 3, "an image, (height, width, channels)")
        feature_width(x)  # raises ShapeError if the width is unknown
        return (
            *count_windows(x[:2], self.kernel_size, self.strides, self.padding, "kernel_size"),
            self.filters,
        )

    def cost(self, x: Shape) -> Cost:
        """`kernel_size[0] · kernel_size[1] · E · filters + filters` parameters.

        With "same" padding, the padded input is saved as well.
        """
        weights = self.kernel_size[0] * self.kernel_size[1] * feature_width(x) * self.filters
        out = self.shape(x)
        padded = (
            count_padded_elements(x, self.kernel_size, self.strides)
            if self.padding == "same"
            else 0
        )
        return Cost(
            parameters=weights + self.filters,
            multiply_adds=weights * numel(out[:2]),
            activations=saved_values_per_output(self.activation) * numel(out) + padded,
        )

    def build(self, x: Shape) -> Convolution:
        """torch's convolution, channels last."""
        same = self.padding == "same"
        return Convolution(
            feature_width(x),
            self.filters,
            self.kernel_size,
            self.strides,
            same,
            build_activation(self.activation),
        )

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Sizes, window and strides that are not square."""
        return cls(filters=5, kernel_size=(3, 2), strides=(2, 1), padding="same"), (7, 11, 3)
