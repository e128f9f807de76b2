"""A network that is going to be exported, and the inputs at which the result is compared with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.language.network import Network
from neural.language.shapes import Misfit, Shape
from neural.modules.build import Built, Chain, EncoderDecoder, any_length
from neural.modules.late import torch
from neural.modules.segmenter import Segmenter
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 64
"""Positions of the sequences that are tried, where any number will do."""


class CannotExport(TaskError):
    """The network cannot leave in that form; the message names what stands in the way, and a way around it."""


class Input(NamedTuple):
    """What a network is called with; the batch is left out."""

    name: str
    sizes: tuple[int | None, ...]
    """None where any size will do."""
    ids: int | None = None
    """How many different ones there are, where it takes ids."""
    mask: bool = False

    @property
    def is_target(self) -> bool:
        """Whether it belongs to the second sequence."""
        return self.name.startswith("target")


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """A network ready to go: on the processor, with the weights to go with, and all that is known about its inputs."""

    name: str
    model: Any
    inputs: tuple[Input, ...]
    length: int
    """Of a usual sequence."""
    scores: bool = False
    """Whether what the loss takes goes out, and not what it predicts."""
    facts: dict[str, Any]
    """What the numbers mean: `vocabulary`, or `features` and `labels`."""

    @property
    def free(self) -> bool:
        """Whether sequences may have any length."""
        return any(None in one.sizes for one in self.inputs)

    @property
    def masked(self) -> bool:
        """Whether padding is told by a mask."""
        return any(one.mask for one in self.inputs)

    @property
    def gives(self) -> str:
        """What to call the output."""
        if self.scores:
            return "scores"
        head = self.model.network.head if isinstance(self.model, Built) else "softmax"
        return "probabilities" if head in ("softmax", "sigmoid") else "predictions"

    def __call__(self, *inputs: Tensor) -> Tensor:
        """What the other program must give, too."""
        with torch.no_grad():
            called: Tensor = (self.model.scores if self.scores else self.model)(*inputs)
        return called

    @property
    def has_target(self) -> bool:
        """Whether there is a second sequence."""
        return any(one.is_target for one in self.inputs)

    def batch(self, count: int, length: int, target_length: int | None = None) -> tuple[Tensor, ...]:
        """Something to call it with; the same numbers every time. Sequences may differ in length."""
        random = torch.Generator().manual_seed(1000 * count + length)
        target_length = length if target_length is None else target_length
        made = []
        for one in self.inputs:
            free = target_length if one.is_target else length
            sizes = (count, *(free if size is None else size for size in one.sizes))
            if one.mask:
                made.append(self._mask(count, sizes[1], random))
            elif one.ids is not None:
                made.append(torch.randint(0, one.ids, sizes, generator=random))
            else:
                made.append(torch.randn(sizes, generator=random))
        device = next((param.device for param in self.model.parameters()), None)
        return tuple(tensor.to(device) for tensor in made)

    def _mask(self, count: int, time: int, random: torch.Generator) -> Tensor:
        """At least one position is real: padding behind, before or among the others."""
        lengths = torch.randint(1, time + 1, (count, 1), generator=random)
        mask = torch.arange(time) < lengths
        if isinstance(self.model, Segmenter) or count == 2:
            return mask   # segmenters take padding at the end alone
        if count == 3:
            return mask.flip(1)
        holes = torch.rand(count, time, generator=random) < 0.3
        return (~holes).scatter(1, lengths - 1, True)

    @cached_property
    def trials(self) -> tuple[tuple[int, ...], ...]:
        """Batches and lengths to compare at, such that the network takes them; the first is the one to trace.

        Two sequences differ in length, and each of them is the longer one once.
        """
        size, open_source = self.length, self._is_open(target=False)
        lengths = [size, size - 1, (size + 1) // 2] if open_source else [size] * 3
        trials: list[tuple[int, ...]] = list(zip((2, 3, 1), lengths, strict=True))
        if self._is_open(target=True):
            longest = max(2, min(size, LONGEST))
            shorter = (2 * longest + 2) // 3
            targets = [
                shorter if shorter != size else longest + 1,
                longest,
                longest if open_source else longest - 1,
            ]
            trials = [(*trial, target) for trial, target in zip(trials, targets, strict=True)]
            trials.append((2, size, longest))   # if nothing else fits, lengths that do not differ
        return tuple(trial for trial in trials if min(trial) and self._takes(*trial))[:3]

    def _is_open(self, *, target: bool) -> bool:
        """Whether the source, or the target, may have any length."""
        return any(None in one.sizes for one in self.inputs if one.is_target == target)

    def _takes(self, *trial: int) -> bool:
        try:
            self(*self.batch(*trial))
        except (ValueError, RuntimeError):   # windows that do not fit into so few positions
            return False
        return True

    def counted(self, inputs: tuple[Tensor, ...], gives: Tensor) -> Tensor | None:
        """The positions of the output that are not padding; None where all are real, or none is left."""
        model: Any = self.model
        if isinstance(model, Chain | EncoderDecoder):
            with torch.no_grad():
                mask = model.scores_with_mask(*inputs)[1]
        else:
            mask = next((one for one in inputs if one.dtype == torch.bool), None)
        return mask if mask is not None and gives.shape[:2] == mask.shape and gives.ndim > 2 else None


def leaving_of(
    model: Any, name: str, *, scores: bool = False, masked: bool = False, length: int | None = None,
    facts: dict[str, Any] | None = None, task: str = "",
) -> Leaving:  # fmt: skip
    """A network in the hand, as it is going to leave."""
    if isinstance(model, Built):
        inputs, usual, declared = _declared(model, masked)
    elif isinstance(model, Segmenter):
        inputs, usual, declared = [Input("x", (None, len(model.centre)))], 24, 24
        inputs += [Input("mask", (None,), mask=True)] if masked else []
    else:
        raise CannotExport(
            f"a run of `{task or type(model).__name__}` is more than one network: what joins them is no part of any; "
            "exported are runs of one program (supervised, language_model) and segmenters. `neural compile` writes "
            "a program as Python"
        )
    if length is not None:
        if not any(None in one.sizes for one in inputs) and length != usual:
            raise CannotExport(f"{name} takes sequences of {usual} and no others; leave --length out")
        inputs = [one._replace(sizes=tuple(length if size is None else size for size in one.sizes)) for one in inputs]
    leaving = Leaving(
        name=name, model=model.eval(), inputs=tuple(inputs), length=length or usual, scores=scores, facts=facts or {}
    )
    if not leaving.trials and length is None:   # windows that need more positions than are usual
        leaving = replace(leaving, length=declared)
    if isinstance(model, Built) and leaving.free and length is None:
        longer = replace(leaving, length=_long_enough(model.network, leaving.length))
        leaving = longer if len(longer.trials) >= len(leaving.trials) else leaving
    if not leaving.trials:
        leaving(*leaving.batch(1, leaving.length))   # says why
    return leaving


def with_masks(leaving: Leaving) -> Leaving:
    """The same network with an input for the padding of each sequence; images and features have none."""
    if leaving.masked or not takes_sequences(leaving.model):
        return leaving
    masks = tuple(
        Input("target_mask" if one.is_target else "mask", one.sizes[:1], mask=True)
        for one in leaving.inputs
    )
    return replace(leaving, inputs=(*leaving.inputs, *masks))


def takes_sequences(model: Any) -> bool:
    """Whether the first axis is time: a network of the language says so by its input."""
    network = model.network if isinstance(model, Built) else None
    return network is None or network.ids or len(network.input) == 2


def _declared(model: Built, masked: bool) -> tuple[list[Input], int, int]:
    """The inputs that a program declares, the length of a usual sequence, and the declared one."""
    network = model.network
    sizes = [int(network.assumed.get(dim, LONGEST)) if isinstance(dim, str) else dim for dim in network.input]
    streams = ["source", "target"] if network.two_streams else ["source"]
    sequence = takes_sequences(model)   # else features or a picture
    free = {one: sequence and any_length(network, one) for one in streams}
    ids = network.layers[0].layer.input_dim if network.ids else None   # type: ignore[attr-defined]  # an Embedding
    shapes = {one: (None if free[one] else sizes[0], *sizes[1:]) for one in streams}
    inputs = [Input(one if network.two_streams else "x", shapes[one], ids) for one in streams]
    if masked:
        if not sequence:
            raise CannotExport(f"{network.name} takes no sequences, so there is no padding; leave --mask out")
        names = {"source": "mask", "target": "target_mask"}
        inputs += [Input(names[one], shapes[one][:1], mask=True) for one in streams]
    # what is traced at 1 stays at 1
    usual = max(2, min(sizes[0], LONGEST)) if free["source"] else sizes[0]
    return inputs, usual, sizes[0]


def _long_enough(network: Network, length: int) -> int:
    """A length at which windows and strides leave two positions everywhere, also of half as many.

    What has one position when it is traced has one for ever. The given length where none is enough.
    """
    streams = ("source", "target") if network.two_streams else ("source",)
    for factor in (1, 2, 4, 8, 16, 32):
        half = (factor * length + 1) // 2
        if all(fewest_positions(network, stream, half) >= min(2, half) for stream in streams):
            return factor * length
    return length


def fewest_positions(network: Network, stream: str, length: int) -> int:
    """The shortest time axis on the way of a sequence; 0 where some layer needs a longer one."""
    time = fewest = length
    for placed in network.layers:
        if placed.stream not in (stream, "both"):
            continue
        for _ in range(placed.copies):
            try:
                gives = placed.layer.shape((time, *placed.given[1:]))
            except Misfit:
                return 0
            if len(gives) < len(placed.given):
                return fewest
            time = int(gives[0])
            fewest = min(fewest, time)
    return fewest


def difference(got: Tensor, wanted: Tensor, real: Tensor | None = None) -> float:
    """The largest difference, at `real` positions alone; above 1, as a share of the largest number."""
    alike = (got == wanted) | (got.isnan() & wanted.isnan())   # also where both are infinite
    apart = (got - wanted).abs().masked_fill(alike, 0)
    apart = apart if real is None else apart[real]
    return (apart.max() / wanted.abs().max().clamp(min=1)).item() if apart.numel() else 0.0


def shape_of(leaving: Leaving, inputs: tuple[Tensor, ...]) -> Shape:
    """Of the sequence that goes in, or of both of them."""
    if not leaving.has_target:
        return tuple(inputs[0].shape)
    return tuple(tuple(tensor.shape) for tensor in inputs[:2])   # type: ignore[return-value]
