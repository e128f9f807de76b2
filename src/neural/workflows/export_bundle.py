"""A network prepared for export: its inputs, and the batches that the export is compared at.

A trial is a comparison of network and export on one batch. A segmenter (tasks/segmentation) labels
the elements, such as sentences, of a document. Networks with two streams are encoder-decoders,
with two sequences as input: source and target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.core.errors import TaskError
from neural.language.network import Network
from neural.language.shapes import Shape, ShapeError
from neural.nn.build import (
    EncoderDecoder,
    NetworkModule,
    SequentialNetwork,
    accepts_any_length,
)
from neural.nn.lazy_torch import torch
from neural.tasks.segmentation.model import Segmenter

if TYPE_CHECKING:
    from torch import Tensor

MAX_TRIAL_LENGTH = 64
"""Largest number of positions in a trial of a network that takes any length."""
SEGMENTER_TRIAL_LENGTH = 24
"""Elements of a document in trials of segmenters."""


class ExportError(TaskError):
    """The network cannot be exported; the message says why and what to do instead."""


class ExportInput(NamedTuple):
    """One input of an exported network; its shape has no batch axis."""

    name: str
    shape: tuple[int | None, ...]
    """None for an axis of any size."""
    vocab_size: int | None = None
    """Number of different ids, for inputs of token ids."""
    is_mask: bool = False
    """Whether it is a padding mask, (time,), True at real positions."""

    @property
    def is_target(self) -> bool:
        """Whether it belongs to the second sequence, the decoder's."""
        return self.name.startswith("target")


@dataclass(frozen=True, kw_only=True)
class ExportBundle:
    """A network in evaluation mode with its inputs, output and metadata, ready for export."""

    name: str
    model: Any
    inputs: tuple[ExportInput, ...]
    length: int
    """Positions of a typical sequence."""
    return_logits: bool = False
    """Whether the output is the logits that the loss takes, not the predictions."""
    metadata: dict[str, Any]
    """Meaning of the numbers: `vocabulary`, or `features` and `labels`."""

    @property
    def has_dynamic_length(self) -> bool:
        """Whether sequences may have any length."""
        return any(None in spec.shape for spec in self.inputs)

    @property
    def has_mask(self) -> bool:
        """Whether there is an input for the padding mask."""
        return any(spec.is_mask for spec in self.inputs)

    @property
    def has_target(self) -> bool:
        """Whether there is a second sequence."""
        return any(spec.is_target for spec in self.inputs)

    @property
    def output_name(self) -> str:
        """Name of the output: scores (logits), probabilities or predictions."""
        if self.return_logits:
            return "scores"
        output_activation = (
            self.model.network.output_activation
            if isinstance(self.model, NetworkModule)
            else "softmax"
        )
        is_probability = output_activation in ("softmax", "sigmoid")
        return "probabilities" if is_probability else "predictions"

    def __call__(self, *inputs: Tensor) -> Tensor:
        """The output that the export must reproduce."""
        with torch.no_grad():
            output: Tensor = (self.model.logits if self.return_logits else self.model)(*inputs)
        return output

    def create_batch(
        self, batch_size: int, length: int, target_length: int | None = None
    ) -> tuple[Tensor, ...]:
        """Random inputs, deterministic in the sizes. Source and target may differ in length."""
        generator = torch.Generator().manual_seed(1000 * batch_size + length)
        target_length = length if target_length is None else target_length
        tensors = []
        for spec in self.inputs:
            positions = target_length if spec.is_target else length
            sizes = (batch_size, *(positions if size is None else size for size in spec.shape))
            if spec.is_mask:
                tensors.append(self._create_mask(batch_size, sizes[1], generator))
            elif spec.vocab_size is not None:
                tensors.append(torch.randint(0, spec.vocab_size, sizes, generator=generator))
            else:
                tensors.append(torch.randn(sizes, generator=generator))
        device = next((param.device for param in self.model.parameters()), None)
        return tuple(tensor.to(device) for tensor in tensors)

    def _create_mask(self, batch_size: int, positions: int, generator: torch.Generator) -> Tensor:
        """A keep mask (B, T) with at least one real position per row.

        Each trial has another batch size, which selects where padding is: 2 at the end, 3 at the
        start, else anywhere.
        """
        lengths = torch.randint(1, positions + 1, (batch_size, 1), generator=generator)
        mask = torch.arange(positions) < lengths
        if isinstance(self.model, Segmenter) or batch_size == 2:
            return mask  # segmenters support padding only at the end
        if batch_size == 3:
            return mask.flip(1)
        is_padding = torch.rand(batch_size, positions, generator=generator) < 0.3
        return (~is_padding).scatter(1, lengths - 1, True)  # a random position is real

    @cached_property
    def trial_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Up to three (batch size, length[, target length]) that the network accepts.

        An exporter traces the network at the first one; network and export are compared at all.
        Source and target differ in length if possible, and each of them is the longer one once.
        """
        size, is_source_dynamic = self.length, self._is_dynamic(target=False)
        lengths = [size, size - 1, (size + 1) // 2] if is_source_dynamic else [size] * 3
        trials: list[tuple[int, ...]] = list(zip((2, 3, 1), lengths, strict=True))
        if self._is_dynamic(target=True):
            longest = max(2, min(size, MAX_TRIAL_LENGTH))
            shorter = (2 * longest + 2) // 3
            targets = [
                shorter if shorter != size else longest + 1,
                longest,
                longest if is_source_dynamic else longest - 1,
            ]
            trials = [(*trial, target) for trial, target in zip(trials, targets, strict=True)]
            trials.append((2, size, longest))  # fallback: lengths that do not differ
        return tuple(trial for trial in trials if min(trial) and self._accepts(*trial))[:3]

    def _is_dynamic(self, *, target: bool) -> bool:
        """Whether the source, or the target, may have any length."""
        return any(None in spec.shape for spec in self.inputs if spec.is_target == target)

    def _accepts(self, *sizes: int) -> bool:
        """Whether the network runs at (batch size, length[, target length])."""
        try:
            self(*self.create_batch(*sizes))
        except (ValueError, RuntimeError):  # such as a kernel that is longer than the sequence
            return False
        return True

    def compute_output_mask(self, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        """Output positions that are not padding, (B, T); None if the output has no time axis."""
        model: Any = self.model
        if isinstance(model, SequentialNetwork | EncoderDecoder):
            with torch.no_grad():
                mask = model.logits_with_mask(*inputs)[1]
        else:
            mask = next((tensor for tensor in inputs if tensor.dtype == torch.bool), None)
        has_time_axis = mask is not None and output.shape[:2] == mask.shape and output.ndim > 2
        return mask if has_time_axis else None


def create_bundle(
    model: Any,
    name: str,
    *,
    return_logits: bool = False,
    with_mask: bool = False,
    length: int | None = None,
    metadata: dict[str, Any] | None = None,
    task: str = "",
) -> ExportBundle:
    """Prepare a network for export. Raises ExportError.

    `with_mask` adds inputs for padding masks, `length` fixes the number of positions, and `task` is
    the name of the run's task, for messages.
    """
    if isinstance(model, NetworkModule):
        inputs, typical_length, declared_length = _declared_inputs(model, with_mask)
    elif isinstance(model, Segmenter):
        inputs = [ExportInput("x", (None, len(model.mean)))]
        inputs += [ExportInput("mask", (None,), is_mask=True)] if with_mask else []
        typical_length = declared_length = SEGMENTER_TRIAL_LENGTH
    else:
        raise ExportError(
            f"a run of `{task or type(model).__name__}` is more than one network and cannot be "
            "exported; runs of one program (supervised, language_model) and segmenters can. "
            "`neural compile` writes a program as Python"
        )
    if length is not None:
        if not any(None in spec.shape for spec in inputs) and length != typical_length:
            raise ExportError(
                f"{name} takes only sequences of {typical_length} positions; leave --length out"
            )
        inputs = [
            spec._replace(shape=tuple(length if size is None else size for size in spec.shape))
            for spec in inputs
        ]
    bundle = ExportBundle(
        name=name,
        model=model.eval(),
        inputs=tuple(inputs),
        length=length or typical_length,
        return_logits=return_logits,
        metadata=metadata or {},
    )
    if length is None and not bundle.trial_sizes:
        # a kernel or window needs more positions than a typical sequence has
        bundle = replace(bundle, length=declared_length)
    if length is None and isinstance(model, NetworkModule) and bundle.has_dynamic_length:
        longer = replace(bundle, length=_find_trace_length(model.network, bundle.length))
        bundle = longer if len(longer.trial_sizes) >= len(bundle.trial_sizes) else bundle
    if not bundle.trial_sizes:
        bundle(*bundle.create_batch(1, bundle.length))  # raises the network's own error
    return bundle


def add_masks(bundle: ExportBundle) -> ExportBundle:
    """Add a mask input for each sequence; images and features have no padding and get none."""
    if bundle.has_mask or not takes_sequences(bundle.model):
        return bundle
    masks = tuple(
        ExportInput("target_mask" if spec.is_target else "mask", spec.shape[:1], is_mask=True)
        for spec in bundle.inputs
    )
    return replace(bundle, inputs=(*bundle.inputs, *masks))


def takes_sequences(model: Any) -> bool:
    """Whether the first axis of the input is time; always true for models without a program."""
    network = model.network if isinstance(model, NetworkModule) else None
    return network is None or network.takes_token_ids or len(network.input) == 2


def _declared_inputs(model: NetworkModule, with_mask: bool) -> tuple[list[ExportInput], int, int]:
    """The inputs of a program, the length of a typical sequence, and the declared length."""
    network = model.network
    # a program may leave a size open, as `T`, with an assumed value
    sizes = [
        int(network.assumed_sizes.get(dim, MAX_TRIAL_LENGTH)) if isinstance(dim, str) else dim
        for dim in network.input
    ]
    streams = ["source", "target"] if network.is_encoder_decoder else ["source"]
    has_time_axis = takes_sequences(model)
    is_dynamic = {
        stream: has_time_axis and accepts_any_length(network, stream) for stream in streams
    }
    vocab_size = None
    if network.takes_token_ids:
        vocab_size = network.layers[0].layer.input_dim  # type: ignore[attr-defined]  # an Embedding
    shapes = {stream: (None if is_dynamic[stream] else sizes[0], *sizes[1:]) for stream in streams}
    inputs = [
        ExportInput(stream if network.is_encoder_decoder else "x", shapes[stream], vocab_size)
        for stream in streams
    ]
    if with_mask:
        if not has_time_axis:
            raise ExportError(
                f"{network.name} takes no sequences, so there is no padding; leave --mask out"
            )
        names = {"source": "mask", "target": "target_mask"}
        inputs += [
            ExportInput(names[stream], shapes[stream][:1], is_mask=True) for stream in streams
        ]
    typical_length = sizes[0]
    if is_dynamic["source"]:
        # at least 2: torch.export treats an axis of size 1 as constant
        typical_length = max(2, min(sizes[0], MAX_TRIAL_LENGTH))
    return inputs, typical_length, sizes[0]


def _find_trace_length(network: Network, length: int) -> int:
    """The multiple of `length` to trace the network at; trials also run it at half that length.

    At both, every layer must have two positions, because `torch.export` makes an axis of size 1 a
    constant. Returns `length` if no multiple up to 32 is long enough.
    """
    streams = ("source", "target") if network.is_encoder_decoder else ("source",)
    for factor in (1, 2, 4, 8, 16, 32):
        half = (factor * length + 1) // 2
        if all(min_positions(network, stream, half) >= min(2, half) for stream in streams):
            return factor * length
    return length


def min_positions(network: Network, stream: str, length: int) -> int:
    """The shortest time axis between the layers for a sequence of `length`.

    `stream` is "source" or "target". 0 if a layer needs a longer sequence.
    """
    positions = shortest = length
    for placed_layer in network.layers:
        if placed_layer.stream not in (stream, "both"):
            continue
        for _ in range(placed_layer.copies):
            try:
                output_shape = placed_layer.layer.shape((positions, *placed_layer.input_shape[1:]))
            except ShapeError:
                return 0
            if len(output_shape) < len(placed_layer.input_shape):  # pooled: no time axis any more
                return shortest
            positions = int(output_shape[0])
            shortest = min(shortest, positions)
    return shortest


def max_difference(output: Tensor, expected: Tensor, mask: Tensor | None = None) -> float:
    """Largest absolute difference where `mask` is true.

    If the largest expected number is above 1, the difference is relative to it. Equal infinities
    and NaN in both count as equal.
    """
    is_equal = (output == expected) | (output.isnan() & expected.isnan())
    difference = (output - expected).abs().masked_fill(is_equal, 0)
    difference = difference if mask is None else difference[mask]
    if not difference.numel():
        return 0.0
    return (difference.max() / expected.abs().max().clamp(min=1)).item()


def input_shape(bundle: ExportBundle, inputs: tuple[Tensor, ...]) -> Shape:
    """Shape of the input; for networks with two sequences, the shapes of both."""
    if not bundle.has_target:
        return tuple(inputs[0].shape)
    return tuple(tuple(tensor.shape) for tensor in inputs[:2])  # type: ignore[return-value]
