"""Network → nn.Module.

A `Network` (language/network.py) is a checked program. Each of its `layers` is a `PlacedLayer`: a
layer declaration (`layer`) with a name, shapes, a number of copies (`Dense(8) * 3` has 3, with
weights of their own) and a stream. The stream says which sequence passes through the layer:
"source" or, in an encoder-decoder network, also "target" or "both".

`forward` returns `output_activation(logits)`; `loss(logits, target)` is the loss. If the loss
contains the activation of the output layer (softmax or sigmoid with cross-entropy), `logits` are
logits, and `output_activation` applies it. Otherwise the output layer applies its activation
itself, and `output_activation` is the identity.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from neural.core.platform_support import physical_memory_bytes
from neural.language.network import Network, PlacedLayer
from neural.language.shapes import Shape, ShapeError, format_shape
from neural.nn.activations import build_activation
from neural.nn.lazy_torch import Module, nn, torch
from neural.nn.mask import as_bool, check_keep_mask
from neural.nn.transformer_block import apply_norm

if TYPE_CHECKING:
    from torch import Tensor


def build(network: Network, *, device: str | None = None) -> NetworkModule:
    """The module of a checked network, by default on the CPU; `device="meta"` allocates no memory.

    Raises MemoryError if the weights, as 32-bit floats, need more than the physical memory.
    """
    weight_bytes = 4 * network.cost.parameters
    memory_bytes = physical_memory_bytes() or math.inf
    if device != "meta" and weight_bytes > memory_bytes:
        raise MemoryError(
            f"the weights of {network.name} take {weight_bytes / 1e9:,.0f} GB; "
            f"this machine has {memory_bytes / 1e9:,.0f}"
        )
    with torch.device(device or "cpu"):
        return EncoderDecoder(network) if network.is_encoder_decoder else SequentialNetwork(network)


def build_layer_modules(network: Network, placed_layer: PlacedLayer) -> list[nn.Module]:
    """One module per copy of a layer; the last layer lacks what `output_activation` applies."""
    layer, x = placed_layer.layer, placed_layer.input_shape
    if placed_layer is network.layers[-1] and network.output_activation != "linear":
        layer = replace(layer, activation="linear")  # type: ignore[call-arg]  # the last layer has one
    modules = []
    for _ in range(placed_layer.copies):
        modules.append(layer.build(x))
        x = layer.shape(x)
    return modules


class NetworkModule(Module):
    """Base class of built networks: one attribute per layer of the program."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        for placed_layer in network.layers:
            modules = build_layer_modules(network, placed_layer)
            self.add_module(
                placed_layer.name,
                modules[0] if placed_layer.copies == 1 else nn.ModuleList(modules),
            )
        self.output_activation = build_activation(network.output_activation)

    def loss(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss that the program declares; `logits` is the output of the method `logits`."""
        if self.network.loss is None:
            raise ValueError(f'{self.network.name} has no loss: add a line such as `loss: "mse"`')
        loss: Tensor = self.network.loss.compute(logits, target)
        return loss

    def blocks(self) -> list[nn.Module]:
        """The transformer blocks, e.g. for sharding or activation checkpointing."""
        modules = [
            getattr(self, placed_layer.name)
            for placed_layer in self.network.layers
            if placed_layer.layer.role in ("encoder", "decoder")
        ]
        return [
            block
            for module in modules
            for block in (module if isinstance(module, nn.ModuleList) else [module])
        ]

    def embedding_weight(self) -> Tensor:
        """Weight of the embedding, which is the first layer; a tied output layer shares it."""
        weight: Tensor = getattr(self, self.network.layers[0].name).table.weight
        return weight

    def check_input(self, x: Tensor, mask: Tensor | None, stream: str = "source") -> None:
        """Raise ValueError if input or mask do not match the declared input."""
        # The first axis, time, is free if sequences may have any length.
        check_input(self.network, int(accepts_any_length(self.network, stream)), x, mask)

    def run_layers(
        self,
        layers: tuple[PlacedLayer, ...],
        x: Tensor,
        mask: Tensor | None,
        memory: tuple[Tensor | None, ...] = (),
    ) -> tuple[Tensor, Tensor | None]:
        """Output of consecutive layers, and its padding mask: None if padding is unknown.

        The mask also becomes None at a layer that removes the time axis. `memory` is the encoder's
        output and its padding mask, for decoder blocks.
        """
        for placed_layer in layers:
            child = getattr(self, placed_layer.name)
            for module in child if placed_layer.copies > 1 else [child]:
                if placed_layer.layer.role == "embedding":
                    mask = module.mask(x, mask)
                if placed_layer.layer.role == "decoder":
                    x = module(x, mask, *memory)
                elif placed_layer.layer.uses_embedding_table:  # a tied output
                    x = module(x, self.embedding_weight())
                elif isinstance(module, nn.RMSNorm):
                    x = apply_norm(module, x)
                else:
                    x = module(x, mask) if placed_layer.layer.uses_mask else module(x)
                # Convolution and pooling change the length of sequence and mask.
                if placed_layer.layer.resizes_mask and mask is not None:
                    mask = module.output_mask(mask, x)
                elif not placed_layer.layer.keeps_time:
                    mask = None
        return x, mask


class SequentialNetwork(NetworkModule):
    """A network with one input: the layers run one after the other."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Predictions. `mask` (batch, time) is True or 1 for positions that are not padding."""
        return self.output_activation(self.logits(x, mask))

    def logits(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Input of the loss: the output before `output_activation`."""
        return self.logits_with_mask(x, mask)[0]

    def logits_with_mask(
        self, x: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The logits and their padding mask, which is None if padding is unknown."""
        self.check_input(x, mask)
        return self.run_layers(self.network.layers, x, as_bool(mask))


class EncoderDecoder(NetworkModule):
    """A network with two inputs: the decoder of the target attends to the encoded source."""

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Predictions for each target position from the source and the target before it."""
        return self.output_activation(self.logits(source, target, mask, target_mask))

    def logits(
        self,
        source: Tensor,
        target: Tensor,
        mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Input of the loss: the output before `output_activation`."""
        return self.logits_with_mask(source, target, mask, target_mask)[0]

    def logits_with_mask(
        self,
        source: Tensor,
        target: Tensor,
        mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """The logits and their padding mask, which is None if padding is unknown."""
        self.check_input(source, mask)
        self.check_input(target, target_mask, "target")
        layers = self.network.layers
        shared = tuple(placed_layer for placed_layer in layers if placed_layer.stream == "both")
        encoder = tuple(placed_layer for placed_layer in layers if placed_layer.stream == "source")
        decoder = tuple(placed_layer for placed_layer in layers if placed_layer.stream == "target")
        memory = self.run_layers(encoder, *self.run_layers(shared, source, as_bool(mask)))
        x, target_mask = self.run_layers(shared, target, as_bool(target_mask))
        return self.run_layers(decoder, x, target_mask, memory)


def accepts_any_length(network: Network, stream: str) -> bool:
    """Whether sequences of a stream may have another length than the program declares.

    They may not if a layer needs the length: its `shape` raises ShapeError for the unknown length
    "T".
    """
    for placed_layer in network.layers:
        if placed_layer.stream not in (stream, "both"):
            continue
        try:
            output_shape = (
                placed_layer.output_shape
                if placed_layer.layer.keeps_time
                else placed_layer.layer.shape(("T", *placed_layer.input_shape[1:]))
            )
        except ShapeError:
            return False
        if len(output_shape) < len(placed_layer.input_shape):  # the time axis is gone
            return True
    return True


def check_input(network: Network, free_axes: int, x: Tensor, mask: Tensor | None) -> None:
    """Raise ValueError if input or mask do not match the network.

    The first `free_axes` axes after the batch may have any size.
    """
    matches = x.ndim == len(network.input) + 1 and all(
        isinstance(declared, str) or declared == size
        for declared, size in zip(network.input[free_axes:], x.shape[1 + free_axes :], strict=False)
    )
    if not matches:
        raise ValueError(
            f"{network.name} takes {format_shape(network.input, batch=True)}, "
            f"got {_format_sizes(x.shape)}"
        )
    if network.takes_token_ids and (x.is_floating_point() or x.is_complex()):
        raise ValueError(f"{network.name} takes token ids (integers), got {x.dtype}")
    if not network.takes_token_ids and not x.is_floating_point():
        raise ValueError(f"{network.name} takes floats, got {x.dtype}")
    if mask is not None and mask.shape != x.shape[:2]:
        raise ValueError(
            f"{network.name} takes a mask of {_format_sizes(x.shape[:2])}, "
            f"got {_format_sizes(mask.shape)}"
        )
    check_keep_mask(mask, f"{network.name}: the mask")


def _format_sizes(shape: Shape) -> str:
    """The sizes of a tensor, formatted like declared shapes."""
    return format_shape(tuple(int(dim) for dim in shape))
