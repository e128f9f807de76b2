"""Convolution over time, channels last."""

from __future__ import annotations

from neural.language.declaration import choice, count
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, need_rank, size, width
from neural.modules.activations import NAMES, activation, kept
from neural.modules.convolution import PADDINGS, Convolution, padded_size, windows


class Conv1D(Layer):
    """Weighted sums over a few neighbouring positions."""

    keeps_time = False
    maps_mask = True

    filters: int = count("Features of the output.")
    kernel_size: int = count("Positions in the window.", default=3)
    strides: int = count("How far the window moves.", default=1)
    padding: str = choice(PADDINGS, '"valid": only whole windows; "same": zeros around the edges.', default="valid")
    activation: str = choice(NAMES, "Applied to the sums.", default="linear", noun="activation", code="E0213")

    @property
    def uses_mask(self) -> bool:
        """Padding counts as zeros."""
        return True

    def shape(self, x: Shape) -> Shape:
        """As many positions as windows fit."""
        need_rank(x, 2, "a sequence, (time, features)")
        width(x)
        return (*windows(x[:1], (self.kernel_size,), (self.strides,), self.padding, "kernel_size"), self.filters)

    def cost(self, x: Shape) -> Cost:
        """One weight per place in the window, input and filter: `kernel_size · E · filters + filters` parameters.

        With zeros around it, the input is kept once more.
        """
        weights = self.kernel_size * width(x) * self.filters
        out = self.shape(x)
        padded = padded_size(x, (self.kernel_size,), (self.strides,)) if self.padding == "same" else 0
        return Cost(
            parameters=weights + self.filters,
            multiply_adds=weights * size(out[:1]),
            activations=kept(self.activation) * size(out) + padded,
        )

    def build(self, x: Shape) -> Convolution:
        """torch's, with the axes turned."""
        same = self.padding == "same"
        after = activation(self.activation)
        return Convolution(width(x), self.filters, (self.kernel_size,), (self.strides,), same, after)

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Every other position."""
        return cls(filters=5, kernel_size=3, strides=2), (7, 3)
