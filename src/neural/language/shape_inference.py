"""Arrange the layers of a network and infer the shape after each of them.

Two rules of the `.neural` language: positions (a positional encoding) are added once before the
first transformer block unless the program says otherwise; a decoder after an encoder reads a second
sequence and attends to the encoder's output, the memory. Then there are two streams, "source" and
"target"; layers before the encoder, the stem, belong to "both". A step is a layer of the program
with its copies (`* N`); the BoundCall is the call it was written as, for spans in messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from neural.core.diagnostics import DiagnosticCollector
from neural.core.names import to_snake_case
from neural.language.binder import BoundCall
from neural.language.layer import Layer
from neural.language.network import PlacedLayer, Stream
from neural.language.shapes import Cost, Shape, ShapeError, format_shape

MAX_PARAMETERS = 2**42
"""Largest accepted number of parameters of a layer, all copies together; more is an error."""


class UnreadableLayer(Layer):
    """Stands for a layer whose call has errors: what comes out of it is not known."""


@dataclass(slots=True)
class LayerStep:
    """A layer of the program before its shapes and its unique name are known."""

    layer: Layer
    copies: int
    bound_call: BoundCall
    stream: Stream = "source"
    automatic: bool = False
    """Whether it was inserted and is not written in the program."""


@dataclass(slots=True)
class ShapeTrace:
    """Shapes and costs, one per layer; fewer if a shape could not be inferred."""

    input_shapes: list[Shape]
    output_shapes: list[Shape]
    costs: list[Cost]
    is_complete: bool = True
    error: ShapeError | None = None
    """The last layer's ShapeError. Without `diagnostics` it ends the trace; else it is reported."""


def arrange_layers(
    steps: list[LayerStep], make_positions: Callable[..., Layer]
) -> tuple[list[LayerStep], bool]:
    """Assign streams, insert positions and final norms.

    `make_positions` is the class of the layer `PositionalEncoding`. Returns the steps, and whether
    there are two sequences.
    """
    steps = list(_insert_norms(steps))
    encoder = next((i for i, step in enumerate(steps) if step.layer.role == "encoder"), None)
    decoder = None
    if encoder is not None:
        decoder = next(
            (i for i in range(encoder, len(steps)) if steps[i].layer.role == "decoder"), None
        )
    if encoder is None or decoder is None:
        return list(_insert_positions(steps, make_positions)), False
    stem, source, target = steps[:encoder], steps[encoder:decoder], steps[decoder:]
    for step in stem:
        step.stream = "both"
    for step in target:
        step.stream = "target"
    has_positions = any(step.layer.role == "positions" for step in stem)
    return [
        *stem,
        *_insert_positions(source, make_positions, has_positions),
        *_insert_positions(target, make_positions, has_positions),
    ], True


def _insert_norms(steps: list[LayerStep]) -> Iterator[LayerStep]:
    """The steps, with a normalization layer after every transformer block with `final_norm`."""
    for step in steps:
        yield step
        if getattr(step.layer, "final_norm", False):
            norm = step.layer.create_norm()  # type: ignore[attr-defined]
            yield replace(step, layer=norm, copies=1, automatic=True)


def _insert_positions(
    steps: list[LayerStep], make_positions: Callable[..., Layer], has_positions: bool = False
) -> Iterator[LayerStep]:
    """The steps of one sequence, with a positions layer before the block that needs one.

    `has_positions`: layers before these steps already add positions. The argument `positional` of
    a block is None by default: the first block then gets the default encoding. An additive encoding
    is a layer before the block; any other one acts inside attention, without a layer.
    """
    added_encodings: set[str] = set()
    is_first_block = True
    for step in steps:
        if step.layer.role == "positions":
            has_positions = True
        if step.layer.role in ("encoder", "decoder"):
            positional: Any = step.layer.positional  # type: ignore[attr-defined]
            if positional is None and is_first_block and not has_positions:
                layer = make_positions()
                yield replace(step, layer=layer, copies=1, automatic=True)
            elif (
                positional is not None
                and positional.is_additive
                and repr(positional) not in added_encodings
            ):
                added_encodings.add(repr(positional))
                yield replace(
                    step, layer=make_positions(encoding_type=positional), copies=1, automatic=True
                )
            is_first_block = False
        yield step


def infer_shapes(
    steps: list[LayerStep],
    input_shape: Shape,
    diagnostics: DiagnosticCollector | None,
    is_encoder_decoder: bool,
    target_length: str | int,
) -> ShapeTrace:
    """Compute the shape after every step.

    Without `diagnostics` all sizes must be numbers, and costs are computed too. `target_length` is
    the length of the decoder's sequence, or its name; unused without an encoder-decoder.
    """
    trace = ShapeTrace([], [], [])
    x: Shape | None = input_shape
    stem_end: Shape | None = input_shape
    memory: Shape | None = None
    is_decoding = False
    for step in steps:
        if is_encoder_decoder and step.stream == "target" and not is_decoding:
            # The target sequence starts here: it went through the stem and has its own length.
            memory, is_decoding = x, True
            x = (target_length, *stem_end[1:]) if stem_end is not None else None
            if memory is not None and len(memory) != 2:
                _report_memory_shape(step, memory, diagnostics)
                memory, trace.is_complete = None, False
        if is_decoding and step.layer.role == "decoder" and memory is not None:
            # A ShapeError is a conflict between the decoder's own arguments: already reported.
            with suppress(ShapeError):
                step.layer = step.layer.with_memory(memory)  # type: ignore[attr-defined]
        if x is None or isinstance(step.layer, UnreadableLayer):
            x, trace.is_complete = None, False
            continue
        trace.input_shapes.append(x)
        x, cost, trace.error = _apply_layer(step, x, diagnostics)
        if trace.error is not None and diagnostics is None:
            x, trace.is_complete = None, False
            break
        if x is not None:
            trace.output_shapes.append(x)
            trace.costs.append(cost)
        if step.stream == "both":
            stem_end = x
    trace.is_complete = trace.is_complete and x is not None
    return trace


def _report_memory_shape(
    step: LayerStep, memory: Shape, diagnostics: DiagnosticCollector | None
) -> None:
    """Report an encoder output that is no sequence."""
    if diagnostics is not None:
        diagnostics.add(
            "E0302",
            f"a decoder attends to a sequence, (time, features), "
            f"but {format_shape(memory)} comes from the encoder",
            step.bound_call.call.name_span,
            helps=["between encoder and decoder, keep the time axis"],
        )


def _apply_layer(
    step: LayerStep, x: Shape, diagnostics: DiagnosticCollector | None
) -> tuple[Shape | None, Cost, ShapeError | None]:
    """Output shape and cost of all copies of a layer.

    Stops at the first copy that keeps the shape: the remaining copies have the same shape and cost.
    """
    total = Cost()
    for copy_index in range(step.copies):
        try:
            y = step.layer.shape(x)
            cost = step.layer.cost(x) if diagnostics is None else Cost()
        except ShapeError as error:
            if diagnostics is not None:
                suffix = f" (copy {copy_index + 1} of {step.copies})" if copy_index else ""
                step.bound_call.report_shape_error(diagnostics, error, suffix)
            return error.assumed_output, total, error  # the shape to continue with, or None
        if y == x:
            return x, total + cost * (step.copies - copy_index), None
        total, x = total + cost, y
    return x, total, None


def check_stem(steps: list[LayerStep], diagnostics: DiagnosticCollector) -> None:
    """Report layers before the encoder that mix positions: both sequences pass through them."""
    for step in steps:
        if step.stream == "both" and not step.layer.pointwise:
            kind = type(step.layer).__name__
            diagnostics.add(
                "E0308",
                f"`{kind}` cannot stand before the encoder: "
                "the decoder's sequence goes through it as well",
                step.bound_call.call.name_span,
                helps=[
                    "`Dense`, `Dropout` and others that treat every position alone can stand there"
                ],
            )
        if step.stream == "target" and step.layer.role == "encoder":
            diagnostics.add(
                "E0309",
                "an encoder cannot come after a decoder",
                step.bound_call.call.name_span,
                helps=["put all `TransformerEncoder` layers before the first `TransformerDecoder`"],
            )


def check_parameter_count(
    steps: list[LayerStep], trace: ShapeTrace, diagnostics: DiagnosticCollector
) -> None:
    """Report layers that are too large to build, before torch overflows."""
    for step, cost in zip(steps, trace.costs, strict=False):
        if cost.parameters > MAX_PARAMETERS:
            message = f"`{type(step.layer).__name__}` would have {cost.parameters:,} parameters"
            helps = [f"more than {MAX_PARAMETERS:,} cannot be built"]
            diagnostics.add("E0310", message, step.bound_call.call.span, helps=helps)


def place_layers(
    steps: list[LayerStep], trace: ShapeTrace, costs: list[Cost]
) -> tuple[PlacedLayer, ...]:
    """The steps as layers of a network, each with a unique name such as `dense_2`."""
    kinds = [to_snake_case(type(step.layer).__name__) for step in steps]
    kind_counts, kinds_so_far = Counter(kinds), Counter[str]()
    placed_layers = []
    for step, kind, input_shape, output_shape, cost in zip(
        steps, kinds, trace.input_shapes, trace.output_shapes, costs, strict=True
    ):
        kinds_so_far[kind] += 1
        name = f"{kind}_{kinds_so_far[kind]}" if kind_counts[kind] > 1 else kind
        placed_layers.append(
            PlacedLayer(
                name=name,
                layer=step.layer,
                copies=step.copies,
                input_shape=input_shape,
                output_shape=output_shape,
                cost=cost,
                stream=step.stream,
                automatic=step.automatic,
                span=step.bound_call.call.span,
            )
        )
    return tuple(placed_layers)
