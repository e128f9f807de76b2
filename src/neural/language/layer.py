"""Base class of layers in a `.neural` program: arguments, shape and cost, and the torch module.

One class per file in neural/nn/layers/. Everything except `build` works without torch. Shapes are
those of one example, without the batch axis. The padding mask, (batch, time), is true at real
positions of a sequence and false at padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from neural.language.declaration import Declaration
from neural.language.shapes import Cost, LayerAdvice, Shape

Role = Literal["plain", "embedding", "positions", "encoder", "decoder", "output"]
"""What a layer does in the network. "positions" adds a positional encoding, "encoder" and "decoder"
are transformer blocks, "output" is the layer `Output`."""


class Layer(Declaration):
    """A layer of a network."""

    role: ClassVar[Role] = "plain"
    """All roles except "plain" have rules of their own in assembly.py and shape_inference.py."""
    keeps_time: ClassVar[bool] = True
    """Whether the output has the positions of the input, so that its padding mask still applies."""
    resizes_mask: ClassVar[bool] = False
    """Whether the module has `output_mask(mask, y)`, the mask after a change of the time axis."""
    pointwise: ClassVar[bool] = False
    """Whether the layer treats every position alone. In an encoder-decoder, only such layers may
    come before the encoder, because both sequences go through them."""

    @property
    def uses_mask(self) -> bool:
        """Whether the module's `forward` takes a padding mask besides `x`."""
        return False

    @property
    def uses_embedding_table(self) -> bool:
        """Whether `forward` also takes the weight of the `Embedding`: a tied output layer."""
        return False

    def shape(self, x: Shape) -> Shape:
        """Output shape for inputs of shape `x`. Raises ShapeError if the layer cannot take them."""
        raise NotImplementedError

    def cost(self, x: Shape) -> Cost:
        """Cost of the layer for one example of shape `x`, in which all sizes are numbers."""
        raise NotImplementedError

    def advice(self, x: Shape) -> Iterator[LayerAdvice]:
        """Yield notes and warnings about a valid layer, for inputs of shape `x`."""
        yield from ()

    def build(self, x: Shape) -> Any:
        """Create the `nn.Module` for inputs of shape `x`. Only this method imports torch."""
        raise NotImplementedError

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """A small instance and its input shape, for the help and for the tests of all layers."""
        raise NotImplementedError
