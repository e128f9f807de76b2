"""What every layer declares: its arguments, the shape and the cost that follow, and the torch module that runs it.

One class in one file of modules/layers/. Everything but `build` works without torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from neural.language.declaration import Declared
from neural.language.shapes import Advice, Cost, Shape

Role = Literal["plain", "embedding", "positions", "encoder", "decoder", "head"]


class Layer(Declared):
    """A step on the way from input to output."""

    role: ClassVar[Role] = "plain"
    """What the network does around this layer: positions before the first block, memory for decoders."""
    keeps_time: ClassVar[bool] = True
    """Whether the padding mask still fits what comes out."""
    maps_mask: ClassVar[bool] = False
    """Whether its module has `output_mask(mask, y)`, the padding mask of its output `y`; where time is not kept."""
    pointwise: ClassVar[bool] = False
    """Whether every position is treated alike and alone, so that a second sequence can go through it as well."""

    @property
    def uses_mask(self) -> bool:
        """Whether its module's `forward` takes the padding mask beside `x`."""
        return False

    @property
    def uses_table(self) -> bool:
        """Whether its module's `forward` takes the embedding's table beside `x`."""
        return False

    def shape(self, x: Shape) -> Shape:
        """What comes out when `x` comes in; Misfit where it cannot."""
        raise NotImplementedError

    def cost(self, x: Shape) -> Cost:
        """What one example of shape `x` costs; all sizes are known."""
        raise NotImplementedError

    def advice(self, x: Shape) -> Iterator[Advice]:
        """Notes and warnings about a layer that works."""
        yield from ()

    def build(self, x: Shape) -> Any:
        """The `nn.Module` for inputs of shape `x`. Here torch begins."""
        raise NotImplementedError

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """The smallest sensible instance and what to feed it: the contract tests and the help use it."""
        raise NotImplementedError
