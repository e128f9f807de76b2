"""A checked network of a `.neural` program: immutable data without torch.

`neural.language.check` creates it; `neural.nn.build` and the exporters read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from neural.core.diagnostics import SourceSpan
from neural.language.declaration import Declaration
from neural.language.layer import Layer
from neural.language.loss import Loss
from neural.language.shapes import Cost, Shape
from neural.language.train_options import TrainOptions

Stream = Literal["both", "source", "target"]
"""Which sequence of an encoder-decoder goes through a layer: encoder input or decoder input.

With one input, every layer is "source".
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLayer:
    """A layer at its position in a network, with its shapes and cost."""

    name: str
    """Unique in the network, such as `transformer_encoder_2`: the module's attribute name."""
    layer: Layer
    """The layer as declared, with its arguments; `build` creates its module."""
    copies: int
    """N of `* N`: copies with weights of their own, one after the other."""
    input_shape: Shape
    output_shape: Shape
    cost: Cost
    """Cost of all copies together, for one example with `Network.assumed_sizes`."""
    stream: Stream
    automatic: bool
    """Whether the language added it, such as a positional encoding before the first transformer
    block; it is not written in the program."""
    span: SourceSpan
    """Where the program calls the layer; for an automatic one, the call of the layer for which it
    was added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A checked network: all shapes fit, and every size that can be inferred is known."""

    name: str
    input: Shape
    takes_token_ids: bool
    """Whether the input is token ids (an `Embedding` comes first) rather than features."""
    layers: tuple[PlacedLayer, ...]
    output: Shape
    output_activation: str
    """Activation from logits to predictions, if the loss contains it, else "linear". The module's
    `forward` applies it; its method `logits`, for the loss, does not."""
    is_encoder_decoder: bool
    """Encoder and decoder: `forward(source, target)`."""
    loss: Loss | None
    optimizer: Declaration | None
    train: TrainOptions
    assumed_sizes: Mapping[str, int]
    """Sizes that the program leaves open, with the values at which costs were computed."""

    @property
    def cost(self) -> Cost:
        """Cost of all layers together."""
        total = Cost()
        for placed_layer in self.layers:
            total += placed_layer.cost
        return total
