"""All axes in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.layer import Layer
from neural.language.shapes import Cost, Misfit, Shape, show, size
from neural.modules.late import nn

if TYPE_CHECKING:
    from torch.nn import Module


class Flatten(Layer):
    """Puts all numbers of an example into one list."""

    keeps_time = False

    def shape(self, x: Shape) -> Shape:
        """The product of all sizes, which must be known."""
        if any(isinstance(dim, str) for dim in x):
            raise Misfit(
                "E0307", f"`Flatten` needs known sizes, but {show(x)} arrives",
                helps=["`GlobalAveragePooling1D` takes sequences of any length"],
            )  # fmt: skip
        return (size(x),)

    def cost(self, x: Shape) -> Cost:
        """A view: nothing."""
        return Cost()

    def build(self, x: Shape) -> Module:
        """torch's."""
        return nn.Flatten()

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Twenty-one numbers."""
        return cls(), (7, 3)
