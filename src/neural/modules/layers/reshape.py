"""Other axes for the same numbers."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from neural.language.declaration import sizes
from neural.language.layer import Layer
from neural.language.shapes import Cost, Misfit, Shape, show, size
from neural.modules.late import Module

if TYPE_CHECKING:
    from torch import Tensor


class Reshape(Layer):
    """Arranges the numbers of an example in other axes, in the same order."""

    keeps_time = False

    target_shape: tuple[int, ...] = sizes("The new sizes; -1 is worked out from the others.")

    def shape(self, x: Shape) -> Shape:
        """The target, if it holds exactly as many numbers."""
        open_axes = [dim for dim in x if isinstance(dim, str)]
        if open_axes:
            raise Misfit("E0307", f"`Reshape` needs known sizes, but {show(x)} arrives")
        have, known = size(x), prod(dim for dim in self.target_shape if dim != -1)
        if -1 in self.target_shape and have % known == 0:
            return tuple(have // known if dim == -1 else dim for dim in self.target_shape)
        if have != known:
            need = f"{known:,}" if -1 not in self.target_shape else f"a multiple of {known:,}"
            raise Misfit(
                "E0304", f"{show(x)} has {have:,} numbers, {show(self.target_shape)} needs {need}",
                at=["target_shape"], assume=None if -1 in self.target_shape else self.target_shape,
                helps=[self._suggestion(x, have)],
            )  # fmt: skip
        return self.target_shape

    def _suggestion(self, x: Shape, have: int) -> str | None:
        last = self.target_shape[-1]
        if len(self.target_shape) == 2 and last > 0 and have % last == 0:
            return f"`({have // last}, {last})` would fit"
        return None

    def cost(self, x: Shape) -> Cost:
        """A view: nothing."""
        return Cost()

    def build(self, x: Shape) -> View:
        """A view of the same numbers."""
        return View(tuple(int(dim) for dim in self.shape(x)))

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Four by six to three by eight."""
        return cls(target_shape=(3, -1)), (4, 6)


class View(Module):
    """Other axes for the same numbers; the batch stays."""

    def __init__(self, target_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.target_shape = target_shape

    def forward(self, x: Tensor) -> Tensor:
        """Row by row, as the numbers lie."""
        return x.reshape(x.shape[0], *self.target_shape)
