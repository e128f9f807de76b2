"""Convolution over images, channels last."""

from __future__ import annotations

from neural.language.declaration import choice, count, pair
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, need_rank, size, width
from neural.modules.activations import NAMES, activation, kept
from neural.modules.convolution import PADDINGS, Convolution, padded_size, windows


class Conv2D(Layer):
    """Weighted sums over a small window that slides over an image."""

    keeps_time = False

    filters: int = count("Features of the output.")
    kernel_size: tuple[int, int] = pair("Height and width of the window.", default=(3, 3))
    strides: tuple[int, int] = pair("How far the window moves.", default=(1, 1))
    padding: str = choice(PADDINGS, '"valid": only whole windows; "same": zeros around the edges.', default="valid")
    activation: str = choice(NAMES, "Applied to the sums.", default="linear", noun="activation", code="E0213")

    def shape(self, x: Shape) -> Shape:
        """As many positions as windows fit."""
        need_rank(x, 3, "an image, (height, width, channels)")
        width(x)
        return (*windows(x[:2], self.kernel_size, self.strides, self.padding, "kernel_size"), self.filters)

    def cost(self, x: Shape) -> Cost:
        """`kernel_size[0] · kernel_size[1] · E · filters + filters` parameters: one weight per place, input and filter.

        With zeros around it, the input is kept once more.
        """
        weights = self.kernel_size[0] * self.kernel_size[1] * width(x) * self.filters
        out = self.shape(x)
        padded = padded_size(x, self.kernel_size, self.strides) if self.padding == "same" else 0
        return Cost(
            parameters=weights + self.filters,
            multiply_adds=weights * size(out[:2]),
            activations=kept(self.activation) * size(out) + padded,
        )

    def build(self, x: Shape) -> Convolution:
        """torch's, with the axes turned."""
        same = self.padding == "same"
        return Convolution(width(x), self.filters, self.kernel_size, self.strides, same, activation(self.activation))

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Not square, on purpose."""
        return cls(filters=5, kernel_size=(3, 2), strides=(2, 1), padding="same"), (7, 11, 3)
