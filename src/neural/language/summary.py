"""Table that `neural check` prints for a network: a row per layer, totals, and notes.

Automatic layers are those that a rule of the language adds, such as a positional encoding; a `+`
marks them. A network with an encoder and a decoder has two inputs, source and target. A size that
the program leaves open, such as T, has an assumed value in the costs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from neural.language.network import Network
from neural.language.shapes import Cost, format_shape

MAX_CALL_WIDTH = 56
"""Characters of the first column; longer calls are wrapped."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One row of the table: a layer as the program writes it, and its output shape."""

    layer: str
    output: str
    cost: Cost
    automatic: bool


def build_rows(network: Network) -> list[SummaryRow]:
    """One row per layer; the copies of `Layer(…) * N` share a row."""
    return [
        SummaryRow(
            layer=("+ " if placed_layer.automatic else "")
            + repr(placed_layer.layer)
            + (f" * {placed_layer.copies}" if placed_layer.copies > 1 else ""),
            output=format_shape(placed_layer.output_shape, batch=True),
            cost=placed_layer.cost,
            automatic=placed_layer.automatic,
        )
        for placed_layer in network.layers
    ]


def iter_notes(network: Network) -> Iterator[str]:
    """Notes below the table: automatic layers, assumed sizes, fused activations."""
    automatic_layers = [placed_layer for placed_layer in network.layers if placed_layer.automatic]
    for placed_layer in automatic_layers:
        stream_text = (
            " to the target"
            if placed_layer.stream == "target"
            else " to the source"
            if network.is_encoder_decoder
            else ""
        )
        yield f"+ added automatically{stream_text}: {placed_layer.layer!r}"
    if network.is_encoder_decoder:
        yield (
            "two inputs: forward(source, target); the decoder attends to the last encoder's output"
        )
    if network.output_activation != "linear":
        activation = network.output_activation
        yield f"the loss takes the logits before {activation}; predictions come after it"
    for name, value in network.assumed_sizes.items():
        yield f"{name} is open: costs are for {name} = {value:,} (`--size {name}=N` for another)"


def format_quantity(number: float, unit: str = "") -> str:
    """A large number with three digits and an SI prefix: 12.3 M."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            digits = ".3g" if number / factor < 999.5 else ".0f"
            return f"{number / factor:{digits}} {prefix}{unit}"
    return f"{number:.0f} {unit}".rstrip()


def format_activation_memory(cost: Cost) -> str:
    """Bytes of the activations of one example, in float32."""
    return format_quantity(4 * cost.activations, "B")


def format_summary(network: Network) -> str:
    """The table in plain text."""
    header = ("layer", "output", "parameters", "multiply-adds", "activations")
    body = [
        (
            row.layer,
            row.output,
            f"{row.cost.parameters:,}",
            format_quantity(row.cost.multiply_adds),
            format_activation_memory(row.cost),
        )
        for row in build_rows(network)
    ]
    total = network.cost
    shape = format_shape(network.output, batch=True)
    footer = (
        "total",
        shape,
        f"{total.parameters:,}",
        format_quantity(total.multiply_adds),
        format_activation_memory(total),
    )
    wrapped_calls = [
        textwrap.wrap(row[0], MAX_CALL_WIDTH, subsequent_indent="    ", break_long_words=False)
        for row in body
    ]
    lengths = [len(call_line) for call_lines in wrapped_calls for call_line in call_lines]
    widths = [
        max(8, *lengths),
        *(max(len(row[column]) for row in (header, *body, footer)) for column in range(1, 5)),
    ]

    def format_line(cells: tuple[str, ...]) -> str:
        """Two columns aligned left, three numbers aligned right."""
        left = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
        return "  ".join([*left, *right]).rstrip()

    lines = []
    for cells, call_lines in zip(body, wrapped_calls, strict=True):
        lines += [format_line((call_lines[0], *cells[1:])), *call_lines[1:]]
    rule = "─" * (sum(widths) + 8)
    title = f"{network.name}: {format_shape(network.input, batch=True)} → {shape}"
    notes = [f"  · {note}" for note in iter_notes(network)]
    return "\n".join(
        [title, "", format_line(header), rule, *lines, rule, format_line(footer), *notes]
    )
