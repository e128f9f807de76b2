"""Base class of layers in a `.neural` program: arguments, shape and cost, and the torch module.

One class per file in neural/nn/layers/. Everything except `build` works without torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from neural.language.declaration import Declaration
from neural.language.shapes import Cost, LayerAdvice, Shape

Role = Literal["plain", "embedding", "positions", "encoder", "decoder", "head"]
"""What a layer is to the network: "positions" adds a positional encoding, "head" is `Output`."""


class Layer(Declaration):
    """A layer of a network."""

    role: ClassVar[Role] = "plain"
    """Layers of other roles than "plain" get special treatment: see shape_inference.py."""
    keeps_time: ClassVar[bool] = True
    """Whether the padding mask of the input applies to the output too."""
    maps_mask: ClassVar[bool] = False
    """Whether the module has `output_mask(mask, y)`, the mask after a change of the time axis."""
    pointwise: ClassVar[bool] = False
    """Whether positions are independent, so that the layer can serve both of two sequences."""

    @property
    def uses_mask(self) -> bool:
        """Whether the module's `forward` takes a padding mask besides `x`."""
        return False

    @property
    def uses_table(self) -> bool:
        """Whether `forward` takes the embedding's weight besides `x`: a tied output layer."""
        return False

    def shape(self, x: Shape) -> Shape:
        """Output shape for inputs of shape `x`, without the batch; ShapeError if `x` is wrong."""
        raise NotImplementedError

    def cost(self, x: Shape) -> Cost:
        """Cost of the layer for one example of shape `x`, in which all sizes are numbers."""
        raise NotImplementedError

    def advice(self, x: Shape) -> Iterator[LayerAdvice]:
        """Notes and warnings about a layer without errors, for inputs of shape `x`."""
        yield from ()

    def build(self, x: Shape) -> Any:
        """Create the `nn.Module` for inputs of shape `x`. Only this method imports torch."""
        raise NotImplementedError

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """The smallest sensible instance and its input shape, for contract tests and help."""
        raise NotImplementedError
