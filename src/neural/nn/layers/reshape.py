"""Reshape of each example.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis. A ShapeError is reported to the user with its code; the check of
later layers continues with the shape `assumed_output`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from neural.language.declaration import shape_field
from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, ShapeError, format_shape, numel
from neural.nn.lazy_torch import Module

if TYPE_CHECKING:
    from torch import Tensor


class Reshape(Layer):
    """Reshapes each example, values in the same order."""

    keeps_time = False  # the padding mask of the input does not fit the output

    target_shape: tuple[int, ...] = shape_field("The new sizes; -1 is inferred from the others.")

    def shape(self, x: Shape) -> Shape:
        """The target shape; ShapeError if it has another number of values."""
        if any(isinstance(dim, str) for dim in x):
            raise ShapeError("E0307", f"`Reshape` needs known sizes, but {format_shape(x)} arrives")
        size, known_size = numel(x), prod(dim for dim in self.target_shape if dim != -1)
        if -1 in self.target_shape and size % known_size == 0:
            return tuple(size // known_size if dim == -1 else dim for dim in self.target_shape)
        if size != known_size:
            required = (
                f"{known_size:,}"
                if -1 not in self.target_shape
                else f"a multiple of {known_size:,}"
            )
            raise ShapeError(
                "E0304",
                f"{format_shape(x)} has {size:,} values, "
                f"{format_shape(self.target_shape)} needs {required}",
                at=["target_shape"],
                assumed_output=None if -1 in self.target_shape else self.target_shape,
                helps=[self._suggest_shape(size)],
            )
        return self.target_shape

    def _suggest_shape(self, size: int) -> str | None:
        """A help text with a shape of `size` values and the same last size; None if none fits."""
        last = self.target_shape[-1]
        if len(self.target_shape) == 2 and last > 0 and size % last == 0:
            return f"`({size // last}, {last})` would fit"
        return None

    def cost(self, x: Shape) -> Cost:
        """Nothing: it is a view."""
        return Cost()

    def build(self, x: Shape) -> ReshapeModule:
        """The module with the inferred shape."""
        return ReshapeModule(tuple(int(dim) for dim in self.shape(x)))

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """(4, 6) to (3, 8)."""
        return cls(target_shape=(3, -1)), (4, 6)


class ReshapeModule(Module):
    """Reshapes all axes but the batch."""

    def __init__(self, target_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.target_shape = target_shape

    def forward(self, x: Tensor) -> Tensor:
        """Values in row-major order."""
        return x.reshape(x.shape[0], *self.target_shape)
