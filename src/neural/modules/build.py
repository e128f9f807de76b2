"""Network → nn.Module.

`forward` predicts; `scores` stops before the head's activation where the loss contains it (softmax or sigmoid
with cross-entropy), so that nothing is squashed twice; `loss(scores, target)` says how wrong the scores are.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from neural.language.network import Network, Placed
from neural.language.shapes import Misfit, Shape, show
from neural.modules.activations import activation
from neural.modules.late import Module, nn, torch
from neural.modules.mask import as_bool, check_keep_mask

if TYPE_CHECKING:
    from torch import Tensor


def build(network: Network, *, device: str | None = None) -> Built:
    """The module for a checked network, MemoryError where it is too large; `device="meta"` makes one without memory."""
    needed, there = 4 * network.cost.parameters, _memory()
    if device != "meta" and needed > there:
        have = f"this machine has {there / 1e9:,.0f}"
        raise MemoryError(f"the weights of {network.name} take {needed / 1e9:,.0f} GB; {have}")
    with torch.device(device or "cpu"):
        return EncoderDecoder(network) if network.two_streams else Chain(network)


def _memory() -> float:
    """Bytes of this machine; where it does not say, as many as anybody asks for."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):   # Windows has no such question
        return math.inf


def modules_of(network: Network, placed: Placed) -> list[nn.Module]:
    """One module per copy. The last layer leaves out the activation that the network's head applies."""
    layer, x = placed.layer, placed.given
    if placed is network.layers[-1] and network.head != "linear":
        layer = replace(layer, activation="linear")   # type: ignore[call-arg]  # heads have activations
    made = []
    for _ in range(placed.copies):
        made.append(layer.build(x))
        x = layer.shape(x)
    return made


class Built(Module):
    """A network of the language, ready to run."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        for placed in network.layers:
            made = modules_of(network, placed)
            self.add_module(placed.name, made[0] if placed.copies == 1 else nn.ModuleList(made))
        self.head = activation(network.head)

    def loss(self, scores: Tensor, target: Tensor) -> Tensor:
        """The loss that the program names, of what `scores` gives."""
        if self.network.loss is None:
            raise ValueError(f"{self.network.name} has no loss: add a line such as `loss: \"mse\"`")
        measured: Tensor = self.network.loss.measure(scores, target)
        return measured

    def blocks(self) -> list[nn.Module]:
        """The transformer blocks: what is worth splitting among processes or recomputing."""
        placed = [one for one in self.network.layers if one.layer.role in ("encoder", "decoder")]
        found = [getattr(self, one.name) for one in placed]
        return [block for one in found for block in (one if isinstance(one, nn.ModuleList) else [one])]

    def table(self) -> Tensor:
        """The vectors of the embedding, which comes first; a tied head has no other weights."""
        found: Tensor = getattr(self, self.network.layers[0].name).table.weight
        return found

    def check(self, x: Tensor, mask: Tensor | None, stream: str = "source") -> None:
        """Refuse an input that the program did not declare."""
        check_input(self.network, int(any_length(self.network, stream)), x, mask)

    def through(
        self, layers: tuple[Placed, ...], x: Tensor, mask: Tensor | None, memory: tuple[Tensor | None, ...] = ()
    ) -> tuple[Tensor, Tensor | None]:
        """Through some of the layers. The mask goes along as long as there is time to mask."""
        for placed in layers:
            found = getattr(self, placed.name)
            for module in found if placed.copies > 1 else [found]:
                if placed.layer.role == "embedding":
                    mask = module.mask(x, mask)
                if placed.layer.role == "decoder":
                    x = module(x, mask, *memory)
                elif placed.layer.uses_table:
                    x = module(x, self.table())
                else:
                    x = module(x, mask) if placed.layer.uses_mask else module(x)
                if placed.layer.maps_mask and mask is not None:
                    mask = module.output_mask(mask, x)
                elif not placed.layer.keeps_time:
                    mask = None
        return x, mask


class Chain(Built):
    """One layer after the other."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Predictions. `mask` (batch, time) is True or 1 where a sequence is real, not padding."""
        return self.head(self.scores(x, mask))

    def scores(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the loss takes."""
        return self.scores_with_mask(x, mask)[0]

    def scores_with_mask(
        self, x: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """What the loss takes, and which of its positions are real; None where padding is unknown."""
        self.check(x, mask)
        return self.through(self.network.layers, x, as_bool(mask))


class EncoderDecoder(Built):
    """Two sequences: the encoder reads the source, the decoder writes the target and looks at what was read."""

    def forward(
        self, source: Tensor, target: Tensor, mask: Tensor | None = None, target_mask: Tensor | None = None
    ) -> Tensor:
        """Predictions for every position of the target from what stands before it and from the source."""
        return self.head(self.scores(source, target, mask, target_mask))

    def scores(
        self, source: Tensor, target: Tensor, mask: Tensor | None = None, target_mask: Tensor | None = None
    ) -> Tensor:
        """What the loss takes."""
        return self.scores_with_mask(source, target, mask, target_mask)[0]

    def scores_with_mask(
        self,
        source: Tensor,
        target: Tensor,
        mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """What the loss takes, and which of its positions are real; None where padding is unknown."""
        self.check(source, mask)
        self.check(target, target_mask, "target")
        layers = self.network.layers
        stem = tuple(placed for placed in layers if placed.stream == "both")
        read = tuple(placed for placed in layers if placed.stream == "source")
        write = tuple(placed for placed in layers if placed.stream == "target")
        memory = self.through(read, *self.through(stem, source, as_bool(mask)))
        x, target_mask = self.through(stem, target, as_bool(target_mask))
        return self.through(write, x, target_mask, memory)


def any_length(network: Network, stream: str) -> bool:
    """Whether time may have another size than declared: no layer that the sequence goes through needs to know it."""
    for placed in network.layers:
        if placed.stream not in (stream, "both"):
            continue
        try:
            gives = placed.gives if placed.layer.keeps_time else placed.layer.shape(("T", *placed.given[1:]))
        except Misfit:
            return False
        if len(gives) < len(placed.given):   # no time left for the layers behind
            return True
    return True


def check_input(network: Network, free: int, x: Tensor, mask: Tensor | None) -> None:
    """Refuse what the program did not declare. The first `free` axes may have other sizes."""
    fits = x.ndim == len(network.input) + 1 and all(
        isinstance(wanted, str) or wanted == got
        for wanted, got in zip(network.input[free:], x.shape[1 + free :], strict=False)
    )
    if not fits:
        raise ValueError(f"{network.name} takes {show(network.input, batch=True)}, got {_sizes(x.shape)}")
    if network.ids and (x.is_floating_point() or x.is_complex()):
        raise ValueError(f"{network.name} takes token ids (whole numbers), got {x.dtype}")
    if not network.ids and not x.is_floating_point():
        raise ValueError(f"{network.name} takes floats, got {x.dtype}")
    if mask is not None and mask.shape != x.shape[:2]:
        raise ValueError(f"{network.name} takes a mask of {_sizes(x.shape[:2])}, got {_sizes(mask.shape)}")
    check_keep_mask(mask, f"{network.name}: the mask")


def _sizes(shape: Shape) -> str:
    return show(tuple(int(dim) for dim in shape))
