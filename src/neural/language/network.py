"""What a program means: frozen, no behaviour. `check` makes it, `build` and the exporter read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from neural.core.diagnostics import Where
from neural.language.declaration import Declared
from neural.language.layer import Layer
from neural.language.loss import Loss
from neural.language.shapes import Cost, Shape
from neural.language.train import Train

Stream = Literal["both", "source", "target"]
"""Which sequence goes through a layer. With one input, everything is "source"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A layer at its place in a network."""

    name: str
    """Unique in the network: the module's path, `transformer_encoder_2`."""
    layer: Layer
    copies: int
    given: Shape
    gives: Shape
    cost: Cost
    """Of all copies together, for one example with the sizes of `Network.assumed`."""
    stream: Stream
    automatic: bool
    """Not written in the program: added by a rule of the language."""
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A checked network: everything fits, every size that can be known is known."""

    name: str
    input: Shape
    ids: bool
    """Whether the input is token ids (an `Embedding` comes first) rather than numbers."""
    layers: tuple[Placed, ...]
    output: Shape
    head: str
    """The activation that makes predictions of scores: applied by `forward`, left out by `scores` and the loss."""
    two_streams: bool
    """Encoder and decoder: `forward(source, target)`."""
    loss: Loss | None
    optimizer: Declared | None
    train: Train
    assumed: Mapping[str, int]
    """Sizes that the program leaves open, with the value at which costs were computed."""

    @property
    def cost(self) -> Cost:
        """Of all layers together."""
        total = Cost()
        for placed in self.layers:
            total += placed.cost
        return total
