"""Sections of a `.neural` network → Network, with shapes and costs; or errors, warnings and notes.

A LayerStep is a layer of the program before its shapes are known (shape_inference.py), a BoundCall
the call it was written as, with spans for messages. The output layer is the last one; a tied output
layer uses the table of the `Embedding` as its weight. A size is open if the program leaves it to
the data, as the length T.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from neural.core.diagnostics import DiagnosticCollector, Fix, Label, SourceSpan
from neural.language.binder import BoundCall
from neural.language.catalogue import Catalogue
from neural.language.network import Network
from neural.language.sections import NetworkSections
from neural.language.shape_inference import (
    LayerStep,
    ShapeTrace,
    UnreadableLayer,
    arrange_layers,
    check_parameter_count,
    check_stem,
    infer_shapes,
    place_layers,
)
from neural.language.shapes import Shape, ShapeError, feature_width

MAX_USUAL_LEARNING_RATE = 1e-3
"""Above this learning rate, a transformer trained with Adam gets a warning."""


def advise_network(
    network: Network,
    last_layer: BoundCall,
    optimizer: BoundCall | None,
    diagnostics: DiagnosticCollector,
) -> None:
    """Report warnings and notes about a network without errors."""
    activation = getattr(last_layer.instance, "activation", "linear")
    fused = network.loss.fused_activations if network.loss else frozenset()
    if fused and activation not in fused and activation != "linear":
        choices = " or ".join(f'"{name}"' for name in sorted(fused))
        diagnostics.add(
            "W0601",
            f'"{activation}" before cross-entropy limits the logits that the loss needs',
            last_layer.find_span(["activation"]),
            helps=[f"use {choices}, or no activation: the loss takes logits of any sign"],
        )
    if network.loss is None:
        diagnostics.add(
            "N0703",
            f"`{network.name}` has no loss: it can be built and run, not trained",
            last_layer.call.name_span,
            helps=["to train it, add a `loss:`"],
        )
    if (
        network.layers[-1].layer.uses_embedding_table
        and getattr(network.layers[0].layer, "init", None) == "torch"
    ):
        # A dot product of two vectors of unit-variance numbers has the deviation sqrt(width).
        initial_logit = feature_width(network.layers[-1].input_shape) ** 0.5
        diagnostics.add(
            "W0605",
            "the table of a tied output layer starts with standard deviation 1: "
            f"the first logits are about {initial_logit:.0f}",
            last_layer.find_span(["tied"]),
            helps=['`Embedding(…, init="gpt2")` starts with 0.02'],
        )
    has_blocks = any(
        placed_layer.layer.role in ("encoder", "decoder") for placed_layer in network.layers
    )
    rate = getattr(network.optimizer, "learning_rate", None)
    if (
        optimizer is not None
        and has_blocks
        and isinstance(rate, float)
        and rate > MAX_USUAL_LEARNING_RATE
    ):
        name = type(network.optimizer).__name__
        if name in ("Adam", "AdamW"):
            diagnostics.add(
                "W0602",
                f"a learning rate of {rate:g} is high for a transformer",
                optimizer.find_span(["learning_rate"]),
                helps=["1e-4 to 1e-3 is usual; attention often collapses above that"],
            )


DEFAULT_LENGTH = 1024
"""Sequence length for which costs are computed if the program leaves it open."""


def assemble_network(
    sections: NetworkSections,
    catalogue: Catalogue,
    diagnostics: DiagnosticCollector,
    sizes: Mapping[str, int],
    errors_before: int,
) -> Network | None:
    """The network of the sections, or None after an error.

    `sizes` are values, for costs, of sizes that the program leaves open, by name.
    `errors_before` is the number of errors so far that do not concern this network.
    """
    input_shape = sections.input_shape
    takes_token_ids = bool(sections.steps) and sections.steps[0].layer.role == "embedding"
    if input_shape is not None and takes_token_ids:
        input_shape = infer_token_input(
            input_shape, sections.steps[0], sections.input_span, diagnostics
        )
    steps, is_encoder_decoder = arrange_layers(
        sections.steps, catalogue.layers.get("PositionalEncoding")
    )
    readable_steps = [step for step in steps if not isinstance(step.layer, UnreadableLayer)]
    check_stem(readable_steps, diagnostics)
    check_layer_order(readable_steps, diagnostics)
    link_layers(readable_steps, diagnostics)
    if input_shape is None or not steps:
        return None
    # Name of the length of the decoder's sequence: "U" if the encoder's length is already "T".
    target_length = "T" if "T" not in input_shape else "U"
    trace = infer_shapes(
        steps,
        input_shape,
        diagnostics,
        is_encoder_decoder=is_encoder_decoder,
        target_length=target_length,
    )
    if isinstance(steps[-1].layer, UnreadableLayer):
        return None
    output_activation = infer_output_activation(steps[-1], sections, diagnostics)
    if not trace.is_complete or diagnostics.error_count > errors_before:
        return None
    cost_trace, assumed_sizes = compute_costs(
        steps, input_shape, target_length if is_encoder_decoder else None, sizes, diagnostics
    )
    if not cost_trace.is_complete:
        return None
    check_parameter_count(steps, cost_trace, diagnostics)
    network = Network(
        name=sections.name,
        input=input_shape,
        takes_token_ids=takes_token_ids,
        layers=place_layers(steps, trace, cost_trace.costs),
        output=trace.output_shapes[-1],
        output_activation=output_activation,
        is_encoder_decoder=is_encoder_decoder,
        loss=sections.loss,
        train=sections.train,
        assumed_sizes=assumed_sizes,
        optimizer=sections.optimizer.instance if sections.optimizer else None,
    )
    for step, layer_input in zip(steps, cost_trace.input_shapes, strict=True):
        if not step.automatic:
            for advice in step.layer.advice(layer_input):
                step.bound_call.report_advice(diagnostics, advice)
    advise_network(network, steps[-1].bound_call, sections.optimizer, diagnostics)
    return network


def infer_token_input(
    input_shape: Shape, first: LayerStep, span: SourceSpan, diagnostics: DiagnosticCollector
) -> Shape:
    """Input shape of a network that begins with an `Embedding`: (length,), token ids.

    A second size in `input:` is compared with the width of the embedding and dropped.
    """
    if len(input_shape) != 2:
        return input_shape
    expected = first.layer.output_dim  # type: ignore[attr-defined]  # embeddings declare it
    if input_shape[1] != expected:
        diagnostics.add(
            "E0305",
            f"`output_dim` is {expected}, but `input` says {input_shape[1]} features",
            first.bound_call.find_span(["output_dim"]),
            labels=[Label(span, "token ids need no width")],
            helps=[f"write `input: ({input_shape[0]},)`"],
        )
    else:
        diagnostics.add(
            "N0702",
            f"the input is {input_shape[0]} token ids; "
            f"{input_shape[1]} is the width after `Embedding`",
            span,
            helps=[f"`input: ({input_shape[0]},)` is clearer"],
            fix=Fix(span, f"({input_shape[0]},)"),
        )
    return input_shape[:1]


def check_layer_order(steps: list[LayerStep], diagnostics: DiagnosticCollector) -> None:
    """Report an `Output` that is not last or has copies, and an `Embedding` that is not first."""
    for step in steps:
        if (
            step.layer.role == "output"
            and (step is not steps[-1] or step.copies > 1)
            and not step.automatic
        ):
            diagnostics.add(
                "E0413",
                "`Output` must be the last layer",
                step.bound_call.call.name_span,
                helps=[
                    "leave the copies out" if step is steps[-1] else "`Dense` may stand anywhere"
                ],
            )
        if step.layer.role == "embedding" and step is not steps[0]:
            diagnostics.add(
                "E0306",
                "`Embedding` takes token ids, but features arrive",
                step.bound_call.call.name_span,
                helps=["it must be the first layer, after `input: (length,)`"],
            )


def infer_output_activation(
    last: LayerStep, sections: NetworkSections, diagnostics: DiagnosticCollector
) -> str:
    """The activation of the last layer if the loss contains it, else "linear".

    Reports a last layer that does not fit the loss.
    """
    activation = getattr(last.layer, "activation", "linear")
    if sections.loss is None:
        return "linear"
    units = getattr(last.layer, "units", None)
    problem = sections.loss.output_problem(activation, units)
    if problem is not None:
        message, help_text = problem
        label = Label(sections.loss_span, "judged by this loss")
        span = (
            last.bound_call.call.span if units == 1 else last.bound_call.find_span(["activation"])
        )
        diagnostics.add("E0407", message, span, labels=[label], helps=[help_text])
    return activation if activation in sections.loss.fused_activations else "linear"


def compute_costs(
    steps: list[LayerStep],
    input_shape: Shape,
    target_length: str | None,
    sizes: Mapping[str, int],
    diagnostics: DiagnosticCollector,
) -> tuple[ShapeTrace, dict[str, int]]:
    """Shapes and costs with numbers for the open sizes, and those numbers by name.

    An open size is taken from `sizes`, else it is the input's length, else DEFAULT_LENGTH. Where a
    layer has a maximum length (learned positions), the length is halved until it fits.
    `target_length` is the name of the decoder's length, None without a second sequence.
    """
    length = next((dim for dim in input_shape[:1] if isinstance(dim, int)), DEFAULT_LENGTH)
    names = [dim for dim in (*input_shape, target_length) if isinstance(dim, str)]
    attempts: list[tuple[ShapeTrace, dict[str, int]]] = []
    while length and not (attempts and attempts[-1][0].is_complete):
        assumed = {name: sizes.get(name, length) for name in names}
        input_sizes = tuple(
            assumed.get(dim, dim) if isinstance(dim, str) else dim for dim in input_shape
        )
        attempts.append(
            (
                infer_shapes(
                    steps,
                    input_sizes,
                    diagnostics=None,
                    is_encoder_decoder=target_length is not None,
                    target_length=assumed.get(target_length or "", 0),
                ),
                assumed,
            )
        )
        # If `sizes` has all open sizes, another length would change nothing: end the loop.
        length = length // 2 if not all(name in sizes for name in names) else 0
    if attempts[-1][0].is_complete:
        return attempts[-1]
    # No length fits. Report the first attempt, whose sizes are the expected ones.
    failed, assumed = attempts[0]
    if failed.error is not None:
        sizes_text = ", ".join(f"{name} = {value}" for name, value in assumed.items())
        steps[len(failed.output_shapes)].bound_call.report_shape_error(
            diagnostics, failed.error, f", with {sizes_text}"
        )
    return failed, assumed


def link_layers(steps: list[LayerStep], diagnostics: DiagnosticCollector) -> None:
    """Tell layers what they need about others: the embedding's table, the number of blocks.

    ShapeErrors are ignored: they are conflicts of a layer's own arguments, already reported.
    """
    for step in steps:
        if step.layer.uses_embedding_table:
            _tie_to_embedding(step, steps[0], diagnostics)
    for role in ("encoder", "decoder"):
        blocks = [step for step in steps if step.layer.role == role]
        for step in blocks:
            with suppress(ShapeError):
                block_count = sum(block.copies for block in blocks)
                step.layer = step.layer.with_block_count(block_count)  # type: ignore[attr-defined]


def _tie_to_embedding(
    step: LayerStep, embedding: LayerStep, diagnostics: DiagnosticCollector
) -> None:
    """Give a tied output layer the shape of the embedding table; `embedding` is the first layer."""
    if embedding.layer.role != "embedding":
        diagnostics.add(
            "E0314",
            "a tied `Output` needs an `Embedding` whose vectors it can use",
            step.bound_call.find_span(["tied"]),
            helps=["leave `tied` out: the input is numbers, not token ids"],
        )
        return
    sizes = embedding.layer.input_dim, embedding.layer.output_dim  # type: ignore[attr-defined]
    with suppress(ShapeError):
        step.layer = step.layer.tie_to(*sizes)  # type: ignore[attr-defined]
