"""Check `neural.intervene` on every Hugging Face model that `neural.watch` measures.

    python -m tests.capture.intervention_table                                  all models, as text
    python -m tests.capture.intervention_table --models gpt_oss,llama           some models
    python -m tests.capture.intervention_table --write docs/interventions.md    replace its tables

The models, implementations, paddings and caches are those of watch_table.py. In every pass:

- The layers are those that `watch` lists, in the same order.
- Zeroing one head of every layer gives the output of a model in which the columns of the output
  projection that read this head are zero. The projection is the linear map whose input is, bit by
  bit, the recorded head output. If there is none (a gate or a norm is in between), the reference is
  a run in which the torch function that returned the head output is followed by setting the head's
  slice to zero; the table says "inside" there.
- Patching a pass into itself, and scaling all heads by 1, give the same bits as no intervention.
- Replacing the pattern of every head by its own recorded weights gives the same output to 1e-5.
- After the block, the model gives the same bits as before.

Errors are relative to the largest absolute output of the pass; rows of padding do not count.

The second table checks blocks.py: the recorded residual stream against `output_hidden_states`,
skipping a block against a model in which that block returns its input, and zeroing an MLP against a
model in which all parameters of that MLP are zero.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from neural.capture.blocks import (
    find_blocks,
    patch_residual,
    record_residual,
    skip_layer,
    zero_mlp,
)
from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import (
    HeadOutputs,
    InterventionError,
    LayerOutputs,
    patch,
    replace_pattern,
    scale,
    zero,
)
from neural.capture.watch import NoAttentionError, watch
from tests.capture import watch_table
from tests.capture.hf_models import MODELS, TinyModel
from tests.capture.opaque_attention import (
    collect_opaque_weights,
    register_opaque_functions,
)
from tests.capture.watch_table import (
    OPAQUE_IMPLEMENTATIONS,
    UNSUPPORTED_ERRORS,
    Case,
    Pass,
    list_cases,
    list_passes,
    run_passes,
    run_uncompiled,
)

ZERO_TOLERANCE = 1e-6
PATTERN_TOLERANCE = 1e-5
PADDINGS = ("no", "left", "right", "packed")
OTHER_HIDDEN_STATES = ("rwkv", "xlnet", "squeezebert", "prophetnet", "pvt")
"""Models whose `hidden_states` are not what enters their blocks: other axes, or outputs."""
BEGIN, END = "<!-- intervention table: begin -->", "<!-- intervention table: end -->"
BLOCKS_BEGIN, BLOCKS_END = "<!-- block table: begin -->", "<!-- block table: end -->"


class Mismatch(AssertionError):
    """An intervention did not do what it says."""


@dataclass
class Outcome:
    """Result of a case."""

    zero_error: float = 0.0
    pattern_error: float | None = 0.0
    """None if a query that counts sees no key: a capture has no weights for it."""
    layers: int = 0
    inside: set[str] = field(default_factory=set)
    """Modules with something between the heads and the output projection."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Module path → why its heads cannot be changed; `all` if there is no other."""
    unsupported: str = ""
    """Why the model itself does not support the case."""

    @property
    def text(self) -> str:
        """Text of a table cell: errors of zeroing and of the pattern."""
        if self.unsupported:
            return "–"
        if not self.layers:
            return "refused"
        pattern = "–" if self.pattern_error is None else format_error(self.pattern_error)
        return f"{format_error(self.zero_error)} / {pattern}"


def format_error(error: float) -> str:
    """One digit, such as 3e-7."""
    return "0" if error == 0 else f"{error:.0e}".replace("e-0", "e-")


def get_output(output: Any) -> torch.Tensor:
    """The logits or the last hidden state; else the first tensor of an output."""
    names = [name for name in ("logits", "last_hidden_state") if output.get(name) is not None]
    return output[names[0]] if names else watch_table.get_output(output)


def list_intervention_cases(names: list[str]) -> Iterator[Case]:
    """Cases of watch_table.py; static caches without padding only, because they change keys only."""
    for case in list_cases(names):
        if case.cache != "static" or case.padding == "no":
            yield case


def run_case(case: Case) -> Outcome:
    """Run one case; raises Mismatch if an intervention is wrong."""
    with run_uncompiled():
        return _run_case(case)


def _run_case(case: Case) -> Outcome:
    register_opaque_functions()
    outcome = Outcome()
    _, passes = list_passes(case)
    try:
        model = case.model.build(case.implementation)
        with collect_opaque_weights() as opaque_calls:
            plain = run_plain(case, model, passes)
    except UNSUPPORTED_ERRORS as error:
        outcome.unsupported = f"{type(error).__name__}: {error}".splitlines()[0][:100]
        return outcome
    if case.implementation in OPAQUE_IMPLEMENTATIONS and not opaque_calls:
        outcome.unsupported = "its attention does not use AttentionInterface"
        return outcome
    recorded = record_passes(case, model, passes, plain, outcome)
    if not recorded:
        return outcome
    # a pass that is refused is the last one: later ones depend on its keys
    passes, plain = passes[: len(recorded)], plain[: len(recorded)]
    check_layers(case, model, passes, recorded, outcome)
    check_identity(case, model, passes, recorded, plain, outcome)
    check_pattern(case, model, passes, recorded, plain, outcome)
    check_zero(case, model, passes, recorded, plain, outcome)
    if not are_equal(plain, run_plain(case, model, passes)):
        raise Mismatch(f"{case}: the model gives another output after the interventions")
    return outcome


def _number_of(passes: list[Pass], current: Pass) -> int:
    """Index of a pass; passes hold tensors, so they are compared by identity."""
    return next(number for number, other in enumerate(passes) if other is current)


def run_plain(case: Case, model: nn.Module, passes: list[Pass]) -> list[torch.Tensor]:
    """Outputs of all passes."""
    return [get_output(item) for item in run_passes(case, model, passes, lambda _, run: run())]


def are_equal(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    """Whether all outputs have the same bits; NaN equals NaN."""
    return all(
        torch.equal(a.nan_to_num(123.0), b.nan_to_num(123.0))
        for a, b in zip(first, second, strict=True)
    )


def record_passes(
    case: Case,
    model: nn.Module,
    passes: list[Pass],
    plain: list[torch.Tensor],
    outcome: Outcome,
) -> list[HeadOutputs]:
    """Head outputs of every pass, up to the first one that is refused."""
    recorded: list[HeadOutputs] = []
    results: list[Any] = []

    def record(**inputs: Any) -> Any:
        handle = model.register_forward_hook(lambda _, __, output: results.append(output))
        try:
            recorded.append(record_head_outputs(model, inputs, keep_weights=True))
        except (NoAttentionError, InterventionError) as error:
            outcome.refusals["all"] = str(error)
            raise StopIteration from None
        finally:
            handle.remove()
        return results[-1]

    with contextlib.suppress(StopIteration):
        run_passes(case, model, passes, lambda _, run: run(call=record))
    outputs = [get_output(item) for item in results[: len(recorded)]]
    if not are_equal(plain[: len(recorded)], outputs):
        raise Mismatch(f"{case}: recording head outputs changed an output")
    outcome.layers = len(recorded[0]) if recorded else 0
    return recorded


def check_layers(
    case: Case,
    model: nn.Module,
    passes: list[Pass],
    recorded: list[HeadOutputs],
    outcome: Outcome,
) -> None:
    """The layers are those of a watch; modules that it refuses are noted."""
    captures: list[Any] = []

    def observe(_: Pass, run: Callable[[], Any]) -> None:
        with watch(model, on_warning=lambda _: None, measures=()) as capture:
            run()
        captures.append(capture)

    run_passes(case, model, passes, observe)
    for capture, outputs in zip(captures, recorded, strict=True):
        watched = [call.path for call in capture]
        layers = [layer.path for layer in outputs.layers]
        outcome.refusals |= capture.refusals
        if watched != layers:
            raise Mismatch(f"{case}: watch lists {watched}, interventions have {layers}")


def address_all(outputs: HeadOutputs, outcome: Outcome) -> Any:
    """All heads. If modules are refused, heads are addressed by paths: "all" would be an error."""
    if not outcome.refusals:
        return "all"
    return [(layer.path, head) for layer in outputs.layers for head in range(layer.output.shape[1])]


def check_identity(
    case: Case,
    model: nn.Module,
    passes: list[Pass],
    recorded: list[HeadOutputs],
    plain: list[torch.Tensor],
    outcome: Outcome,
) -> None:
    """Patching every pass into itself and scaling by 1 change no bit."""

    def observe_patch(current: Pass, run: Callable[[], Any]) -> None:
        outputs = recorded[_number_of(passes, current)]
        with intervene(model, patch(address_all(outputs, outcome), outputs)):
            run()

    def observe_scale(current: Pass, run: Callable[[], Any]) -> None:
        outputs = recorded[_number_of(passes, current)]
        with intervene(model, scale(address_all(outputs, outcome), 1.0)):
            run()

    for name, observe in (("patching a pass into itself", observe_patch), ("×1", observe_scale)):
        outputs = [get_output(item) for item in run_passes(case, model, passes, observe)]
        if not are_equal(plain, outputs):
            raise Mismatch(
                f"{case}: {name} changed an output, by {measure(plain, outputs, passes)}"
            )


def check_pattern(
    case: Case,
    model: nn.Module,
    passes: list[Pass],
    recorded: list[HeadOutputs],
    plain: list[torch.Tensor],
    outcome: Outcome,
) -> None:
    """The recorded weights as a pattern give the model's output."""
    if any(
        has_empty_rows(outputs, current) for outputs, current in zip(recorded, passes, strict=True)
    ):
        outcome.pattern_error = None
        return

    def observe(current: Pass, run: Callable[[], Any]) -> None:
        layers = recorded[_number_of(passes, current)].layers
        changes = []
        for number, layer in enumerate(layers):
            address = layer.path if outcome.refusals else number
            heads = [(address, head) for head in range(layer.output.shape[1])]
            changes.append(replace_pattern(heads, layer.weights))
        with intervene(model, *changes):
            run()

    outputs = [get_output(item) for item in run_passes(case, model, passes, observe)]
    outcome.pattern_error = measure(plain, outputs, passes)
    if not outcome.pattern_error <= PATTERN_TOLERANCE:
        raise Mismatch(f"{case}: its own pattern changes the output by {outcome.pattern_error}")


def has_empty_rows(outputs: HeadOutputs, current: Pass) -> bool:
    """Whether a query that is not padding sees no key, as with windows beside the used slots."""
    for layer in outputs.layers:
        is_empty = (layer.weights.sum(dim=-1) < 1e-6).any(dim=1)  # (B, Q)
        if is_empty.shape == current.counted.shape:
            is_empty = is_empty & torch.from_numpy(current.counted)
        if is_empty.any():
            return True
    return False


def measure(expected: list[torch.Tensor], outputs: list[torch.Tensor], passes: list[Pass]) -> float:
    """Largest difference, relative to the largest expected value of the pass."""
    errors = [0.0]
    for first, second, current in zip(expected, outputs, passes, strict=True):
        has_rows = first.shape[:2] == current.counted.shape
        rows = current.real_rows if has_rows else slice(None)
        first, second = first[rows].double(), second[rows].double()
        errors.append(float((first - second).abs().max() / first.abs().max()))
    return max(errors, key=lambda error: float("inf") if error != error else error)


# zeroing


def check_zero(
    case: Case,
    model: nn.Module,
    passes: list[Pass],
    recorded: list[HeadOutputs],
    plain: list[torch.Tensor],
    outcome: Outcome,
) -> None:
    """Zeroing one head of every layer equals zeroing what the output projection reads from it."""
    reference = case.model.build(case.implementation)
    projections = find_projections(case, reference, passes, recorded)
    heads = choose_heads(recorded[0], projections)
    inside = {path for path in heads if path not in projections}
    outcome.inside |= inside
    points: list[dict[int, Point]] = []

    def observe_points(current: Pass, run: Callable[[], Any]) -> None:
        outputs = recorded[_number_of(passes, current)]
        with FindPoints(outputs, inside) as mode:
            run()
        located = {(point.layer, point.part) for point in mode.points.values()}
        missing = [
            layer.path
            for number, part, layer in list_parts(outputs, inside)
            if (number, part) not in located
        ]
        if missing:
            raise Mismatch(f"{case}: no function returned the recorded output of {missing}")
        points.append(mode.points)

    def observe_reference(current: Pass, run: Callable[[], Any]) -> None:
        number = _number_of(passes, current)
        with ZeroAtPoints(recorded[number], points[number], heads):
            run()

    if inside:  # found before any weight is changed
        run_passes(case, reference, passes, observe_points)
    zero_columns(recorded[0], projections, heads)
    expected = [
        get_output(item)
        for item in run_passes(
            case, reference, passes, observe_reference if inside else lambda _, run: run()
        )
    ]

    # one block for all passes: layers keep their numbers in passes that leave some out
    addresses: list[Any] = [
        (layer.path if outcome.refusals else number, heads[layer.path])
        for number, layer in enumerate(recorded[0].layers)
    ]
    with intervene(model, zero(addresses)):
        outputs = run_plain(case, model, passes)
    outcome.zero_error = measure(expected, outputs, passes)
    if not outcome.zero_error <= ZERO_TOLERANCE:
        raise Mismatch(f"{case}: zeroed heads differ from zeroed columns by {outcome.zero_error}")
    if measure(plain, outputs, passes) <= 100 * ZERO_TOLERANCE:
        raise Mismatch(f"{case}: zeroing heads changes nothing")


def choose_heads(outputs: HeadOutputs, projections: dict[str, nn.Module]) -> dict[str, int]:
    """One head per module: other ones in neighbouring layers, the same for shared weights."""
    heads: dict[str, int] = {}
    by_projection: dict[int, int] = {}
    for number, layer in enumerate(outputs.layers):
        head = (number + 1) % layer.output.shape[1]
        projection = projections.get(layer.path)
        if projection is not None:
            head = by_projection.setdefault(id(projection), head)
        heads.setdefault(layer.path, head)
    return heads


def find_projections(
    case: Case, model: nn.Module, passes: list[Pass], recorded: list[HeadOutputs]
) -> dict[str, nn.Module]:
    """The linear map that reads the head outputs of each module, by the module's path."""
    projections: dict[str, nn.Module] = {}
    ran: set[nn.Module] = set()

    def compare(module: nn.Module, args: tuple[Any, ...]) -> None:
        ran.add(module)
        for layer in recorded[0].layers:
            is_new = layer.path not in projections
            if is_new and any(
                is_same(args[0], form) for form in list_layouts(module, layer.output)
            ):
                projections[layer.path] = module

    handles = [
        module.register_forward_pre_hook(compare)
        for module in model.modules()
        if _get_matrix(module) is not None
    ]
    run_passes(case, model, passes[:1], lambda _, run: run())
    for handle in handles:
        handle.remove()
    for layer in recorded[0].layers:
        # `multi_head_attention_forward` of torch takes the weight, so the module does not run
        projection = getattr(model.get_submodule(layer.path), "out_proj", None)
        if layer.path not in projections and projection is not None and projection not in ran:
            projections[layer.path] = projection
    return projections


def _get_matrix(module: nn.Module) -> torch.Tensor | None:
    """Weight of a linear map, as (features out, features in)."""
    if type(module).__name__ == "Conv1D":  # of transformers
        return module.weight.T
    if isinstance(module, nn.Linear):
        return module.weight
    is_pointwise = isinstance(module, nn.Conv1d) and module.kernel_size == (1,)
    return module.weight[:, :, 0] if is_pointwise and module.groups == 1 else None


def list_layouts(module: nn.Module, output: torch.Tensor) -> list[torch.Tensor]:
    """Head outputs (B, H, Q, D) as inputs of a linear map: batch or time first, or channels."""
    if isinstance(module, nn.Conv1d):
        return [output.transpose(2, 3).flatten(1, 2)]
    return [output.transpose(1, 2).flatten(2), output.permute(2, 0, 1, 3).flatten(2)]


def is_same(x: Any, form: torch.Tensor) -> bool:
    """Whether a tensor has the numbers of `form`, in the same order."""
    if not torch.is_tensor(x) or x.numel() != form.numel() or x.shape[-1] != form.shape[-1]:
        return False
    return torch.equal(x.reshape(form.shape), form)


def zero_columns(
    outputs: HeadOutputs, projections: dict[str, nn.Module], heads: dict[str, int]
) -> None:
    """Set the columns of each projection that read the chosen head to zero."""
    with torch.no_grad():
        for layer in outputs.layers:
            if layer.path in projections:
                width = layer.output.shape[3]
                start = heads[layer.path] * width
                _get_matrix(projections[layer.path])[:, start : start + width] = 0


@dataclass
class Point:
    """A torch function that returns the head outputs of a layer."""

    layer: int
    part: int
    """0; 1 and more for further calls of the layer."""
    axes: tuple[int, ...]
    """Order of the axes (B, H, Q, D) in its result."""


AXES = ((0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3), (0, 1, 3, 2))
"""Layouts of head outputs. Two neighbouring axes may be one, so heads may be in the batch."""


def list_parts(outputs: HeadOutputs, paths: set[str]) -> Iterator[tuple[int, int, LayerOutputs]]:
    """Layer, part and outputs of all calls of the modules at `paths`."""
    for number, layer in enumerate(outputs.layers):
        if layer.path in paths:
            for part, further in enumerate([layer, *layer.further_parts]):
                yield number, part, further


class FindPoints(TorchFunctionMode):
    """Numbers the torch functions of a pass, and finds those that return head outputs."""

    def __init__(self, outputs: HeadOutputs, paths: set[str]) -> None:
        super().__init__()
        self.outputs, self.paths, self.count = outputs, paths, 0
        self.points: dict[int, Point] = {}
        """By number of the function."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.count += 1
        with torch._C.DisableTorchFunction():
            tensor = result[0] if isinstance(result, tuple) and result else result
            located = {(point.layer, point.part) for point in self.points.values()}
            for number, part, layer in list_parts(self.outputs, self.paths):
                if (number, part) in located:
                    continue
                for axes in AXES:
                    form = layer.output.permute(axes)
                    if (
                        torch.is_tensor(tensor)
                        and tensor.numel() == form.numel()
                        and torch.equal(tensor.reshape(form.shape), form)
                    ):
                        self.points[self.count] = Point(number, part, axes)
                        return result
        return result


class ZeroAtPoints(TorchFunctionMode):
    """Sets the slice of a head to zero in the results of the functions that `FindPoints` found."""

    def __init__(
        self, outputs: HeadOutputs, points: dict[int, Point], heads: dict[str, int]
    ) -> None:
        super().__init__()
        self.outputs, self.points, self.heads, self.count = outputs, points, heads, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.count += 1
        point = self.points.get(self.count)
        if point is None:
            return result
        with torch._C.DisableTorchFunction():
            tensor = result[0] if isinstance(result, tuple) else result
            layer = [self.outputs[point.layer], *self.outputs[point.layer].further_parts][
                point.part
            ]
            new = tensor.reshape(layer.output.permute(point.axes).shape).clone()
            new.select(point.axes.index(1), self.heads[layer.path]).zero_()
            new = new.reshape(tensor.shape)
            return (new, *result[1:]) if isinstance(result, tuple) else new


# blocks


@dataclass
class BlockOutcome:
    """Result of the checks of blocks.py for one model."""

    blocks: int = 0
    stream_layers: int = 0
    """Streams that were compared with `output_hidden_states`."""
    skip_error: float | None = None
    """None if blocks cannot be skipped."""
    mlp_error: float | None = None
    """None if the MLP is not known."""
    note: str = ""


class PassThrough(nn.Module):
    """Runs a block and returns its input instead of its output."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.block, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = self.block(*args, **kwargs)
        stream = args[0] if args else next(iter(kwargs.values()))
        return (stream, *output[1:]) if isinstance(output, tuple | list) else stream


def run_blocks(tiny: TinyModel, implementation: str = "eager") -> BlockOutcome:
    """Check blocks, MLPs and the residual stream of one model; raises Mismatch."""
    case = Case(tiny, implementation, "no", None)
    inputs = list_passes(case)[1][0].inputs
    if tiny.family == "decoder":
        inputs = {**inputs, "use_cache": False}
    model, outcome = tiny.build(implementation), BlockOutcome()

    def run(network: nn.Module = model, **more: Any) -> Any:
        torch.manual_seed(0)
        with torch.no_grad():
            return network(**inputs, **more)

    blocks = find_blocks(model)
    outcome.blocks = len(blocks)
    if not blocks:
        try:
            record_residual(model, inputs)
        except InterventionError as error:
            outcome.note = str(error).partition(".")[0]
            return outcome
        raise Mismatch(f"{tiny.name}: a model without blocks has a residual stream")
    plain = get_output(run())
    try:
        torch.manual_seed(0)
        streams = record_residual(model, inputs)
    except InterventionError as error:
        outcome.note = str(error).partition(". Supported are")[0]
        return outcome
    outcome.stream_layers = compare_streams(tiny, streams, run(output_hidden_states=True))
    changes = [
        patch_residual(layer, stream)
        for layer, stream in enumerate(streams.layers)
        if stream is not None
    ]
    with intervene(model, *changes):
        patched = get_output(run())
    if not are_equal([plain], [patched]):
        raise Mismatch(f"{tiny.name}: patching the residual stream into itself changed the output")
    layer = len(blocks) - 1
    outcome.skip_error = compare_skip(tiny, implementation, model, layer, run, outcome)
    if blocks[layer].mlp is not None:
        outcome.mlp_error = compare_mlp(tiny, implementation, model, layer, run)
    if not are_equal([plain], [get_output(run())]):
        raise Mismatch(f"{tiny.name}: the model gives another output after the interventions")
    return outcome


def compare_streams(tiny: TinyModel, streams: Any, output: Any) -> int:
    """Compare with the hidden states that the model returns; returns how many were compared."""
    names = ("hidden_states", "encoder_hidden_states", "decoder_hidden_states")
    states = [tuple(output[name]) for name in names if output.get(name) is not None]
    # the last state of a stack is after the final norm, and is that of no block's input
    expected = [state for stack in states for state in stack[:-1]]
    inputs = streams.layers[:-1]
    if len(expected) != len(inputs):
        return 0
    matches = [
        stream is not None and stream.shape == state.shape and torch.equal(stream, state)
        for stream, state in zip(inputs, expected, strict=True)
    ]
    if not all(matches):
        if tiny.name in OTHER_HIDDEN_STATES:
            return 0
        raise Mismatch(f"{tiny.name}: the residual stream is not `hidden_states`: {matches}")
    return len(matches)


def compare_skip(
    tiny: TinyModel,
    implementation: str,
    model: nn.Module,
    layer: int,
    run: Callable[..., Any],
    outcome: BlockOutcome,
) -> float | None:
    """Error of skipping a block; None if that is refused."""
    try:
        with intervene(model, skip_layer(layer)):
            skipped = get_output(run())
    except InterventionError as error:
        outcome.note = str(error).partition(". Supported are")[0]
        return None
    reference = tiny.build(implementation)
    block = find_blocks(reference)[layer]
    parent, _, name = block.path.rpartition(".")
    setattr(reference.get_submodule(parent), name, PassThrough(block.module))
    expected = get_output(run(reference))
    return compare_changed(f"{tiny.name}: skipping a block", get_output(run()), expected, skipped)


def compare_mlp(
    tiny: TinyModel, implementation: str, model: nn.Module, layer: int, run: Callable[..., Any]
) -> float:
    """Error of zeroing an MLP."""
    with intervene(model, zero_mlp(layer)):
        zeroed = get_output(run())
    reference = tiny.build(implementation)
    with torch.no_grad():
        for param in find_blocks(reference)[layer].mlp.parameters():
            param.zero_()
    expected = get_output(run(reference))
    return compare_changed(f"{tiny.name}: zeroing an MLP", get_output(run()), expected, zeroed)


def compare_changed(
    what: str, plain: torch.Tensor, expected: torch.Tensor, output: torch.Tensor
) -> float:
    """Relative error; raises Mismatch if it is large or if nothing changed."""
    size = expected.double().abs().max()
    error = float((expected.double() - output.double()).abs().max() / size)
    if not error <= ZERO_TOLERANCE:
        raise Mismatch(f"{what} differs from the reference by {error}")
    if plain.shape == output.shape and torch.equal(plain, output):
        raise Mismatch(f"{what} changes nothing")
    return error


# the tables


def format_table(
    names: list[str],
    on_case: Callable[[Case, Outcome], None] = lambda case, outcome: None,
    on_mismatch: Callable[[Case, Exception], None] | None = None,
) -> str:
    """The table of interventions on heads, in Markdown; raises Mismatch unless `on_mismatch`."""
    results: dict[tuple[str, str], dict[tuple[str, str | None], Outcome]] = {}
    for case in list_intervention_cases(names):
        try:
            outcome = run_case(case)
        except Exception as error:  # an error of any kind is a mismatch of this case
            if on_mismatch is None:
                raise
            on_mismatch(case, error)
            continue
        on_case(case, outcome)
        row = results.setdefault((case.model.name, case.implementation), {})
        row[case.padding, case.cache] = outcome
    outcomes = [outcome for row in results.values() for outcome in row.values()]
    lines = [
        format_counts(outcomes),
        "",
        "| model | attention | by | no padding | left | right | packed | reference | refused |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, implementation), row in results.items():
        if all(outcome.unsupported for outcome in row.values()):
            continue
        cells = [
            " · ".join(outcome.text for (padding, _), outcome in row.items() if padding == column)
            for column in PADDINGS
        ]
        inside = {path for outcome in row.values() for path in outcome.inside}
        is_refused = not any(outcome.layers for outcome in row.values())
        place = "" if is_refused else "inside" if inside else "columns"
        start = [f"`{name}`", MODELS[name].attention, implementation]
        lines.append(
            f"| {' | '.join([*start, *cells, place, format_refusals(list(row.values()))])} |"
        )
    return "\n".join(lines)


def format_counts(outcomes: list[Outcome]) -> str:
    """Number of cases by result, and the largest errors."""
    supported = [outcome for outcome in outcomes if not outcome.unsupported]
    changed = [outcome for outcome in supported if outcome.layers]
    partly = [outcome for outcome in changed if outcome.refusals]
    inside = [outcome for outcome in changed if outcome.inside]
    zero_error = max((outcome.zero_error for outcome in changed), default=0.0)
    pattern_error = max((outcome.pattern_error or 0.0 for outcome in changed), default=0.0)
    return (
        f"{len(supported)} cases: {len(changed)} passed, {len(partly)} of them with modules that are "
        f"refused, and {len(supported) - len(changed)} refused. The largest error of zeroing heads "
        f"is {format_error(zero_error)}, that of their own pattern {format_error(pattern_error)}. "
        f"In {len(inside)} cases a gate, a norm or another sum lies between heads and projection. "
        f"transformers does not support another {len(outcomes) - len(supported)}."
    )


def format_refusals(outcomes: list[Outcome]) -> str:
    """Modules that are refused, with reasons."""
    paths_by_reason: dict[str, list[str]] = {}
    for outcome in outcomes:
        for path, reason in outcome.refusals.items():
            paths_by_reason.setdefault(re.sub(r"\([\d, ]+\)", "(…)", reason), []).append(path)
    notes = []
    for reason, paths in paths_by_reason.items():
        message = reason.partition(". Recognised are")[0].replace("|", "\\|")
        path = re.sub(r"\.\d+", ".N", paths[0])
        notes.append(message if path == "all" else f"`{path}`: {message}")
    return "; ".join(notes)


def format_block_table(
    names: list[str],
    on_model: Callable[[str, BlockOutcome], None] = lambda name, outcome: None,
    on_mismatch: Callable[[str, Exception], None] | None = None,
) -> str:
    """The table of interventions on blocks, in Markdown; raises Mismatch unless `on_mismatch`."""
    outcomes: dict[str, BlockOutcome] = {}
    for name in names:
        try:
            outcomes[name] = run_blocks(MODELS[name])
        except Exception as error:
            if on_mismatch is None:
                raise
            on_mismatch(name, error)
            continue
        on_model(name, outcomes[name])
    with_blocks = [outcome for outcome in outcomes.values() if outcome.skip_error is not None]
    with_mlps = [outcome for outcome in outcomes.values() if outcome.mlp_error is not None]
    with_streams = [outcome for outcome in outcomes.values() if outcome.stream_layers]
    errors = [outcome.skip_error for outcome in with_blocks if outcome.skip_error is not None]
    errors += [outcome.mlp_error for outcome in with_mlps if outcome.mlp_error is not None]
    lines = [
        f"{len(outcomes)} models: {len(with_blocks)} with blocks that can be skipped, "
        f"{len(with_mlps)} with a known MLP, {len(with_streams)} whose residual stream equals the "
        f"hidden states that transformers returns. The largest error is "
        f"{format_error(max(errors, default=0.0))}.",
        "",
        "| model | blocks | streams compared | skip | zero MLP | note |",
        "|---|---|---|---|---|---|",
    ]
    for name, outcome in outcomes.items():
        cells = [
            "refused" if error is None else format_error(error)
            for error in (outcome.skip_error, outcome.mlp_error)
        ]
        note = outcome.note.replace("|", "\\|")
        lines.append(
            f"| `{name}` | {outcome.blocks} | {outcome.stream_layers} | {cells[0]} | {cells[1]} "
            f"| {note} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the tables, or write them into a page. Exit code 1 if a case is wrong."""
    import transformers

    transformers.logging.set_verbosity_error()
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", choices=("heads", "blocks"))
    args = parser.parse_args()
    names, mismatches = args.models.split(","), []

    def show(name: Any, outcome: Any) -> None:
        print(f"{name}: {outcome}", file=sys.stderr)

    def fail(name: Any, error: Exception) -> None:
        mismatches.append(f"{name}: {type(error).__name__}: {error}")
        print(f"WRONG {mismatches[-1]}", file=sys.stderr)

    tables = {}
    if args.only != "blocks":
        tables[BEGIN, END] = format_table(names, show, fail)
    if args.only != "heads":
        tables[BLOCKS_BEGIN, BLOCKS_END] = format_block_table(names, show, fail)
    for (begin, end), text in tables.items():
        if args.write is None:
            print(text, end="\n\n")
            continue
        page = args.write.read_text(encoding="utf-8")
        before, after = page.partition(begin)[0], page.partition(end)[2]
        args.write.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
    if mismatches:
        raise SystemExit("\n".join([f"{len(mismatches)} cases are wrong:", *mismatches]))


if __name__ == "__main__":
    main()
