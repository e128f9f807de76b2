"""Network → the table that `neural check` shows: a row per layer, totals, and what was added automatically."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from neural.language.network import Network
from neural.language.shapes import Cost, show

WIDEST_CALL = 56
"""Longer calls go over several lines of the table."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    layer: str
    output: str
    cost: Cost
    automatic: bool


def rows(network: Network) -> list[Row]:
    """A row per layer as written; copies together."""
    return [
        Row(
            layer=("+ " if placed.automatic else "")
            + repr(placed.layer)
            + (f" * {placed.copies}" if placed.copies > 1 else ""),
            output=show(placed.gives, batch=True),
            cost=placed.cost,
            automatic=placed.automatic,
        )
        for placed in network.layers
    ]


def remarks(network: Network) -> Iterator[str]:
    """What a reader of the table should know: what was added, what is assumed, what the loss takes over."""
    added = [placed for placed in network.layers if placed.automatic]
    for placed in added:
        whose = " to the target" if placed.stream == "target" else " to the source" if network.two_streams else ""
        yield f"+ added automatically{whose}: {placed.layer!r}"
    if network.two_streams:
        yield "two inputs: forward(source, target); the decoder looks at the last encoder's output"
    if network.head != "linear":
        yield f"the loss takes the scores before {network.head}; predictions come after it"
    for name, value in network.assumed.items():
        yield f"{name} is open: costs are for {name} = {value:,} (`--size {name}=N` for another)"


def quantity(number: float, unit: str = "") -> str:
    """A large number in three digits: 12.3 M."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            digits = ".3g" if number / factor < 999.5 else ".0f"
            return f"{number / factor:{digits}} {prefix}{unit}"
    return f"{number:.0f} {unit}".rstrip()


def memory(cost: Cost) -> str:
    """Activation memory of one example, in 32-bit floats."""
    return quantity(4 * cost.activations, "B")


def text_table(network: Network) -> str:
    """The table in plain text."""
    head = ("layer", "output", "parameters", "multiply-adds", "activations")
    body = [
        (row.layer, row.output, f"{row.cost.parameters:,}", quantity(row.cost.multiply_adds), memory(row.cost))
        for row in rows(network)
    ]
    total = network.cost
    shape = show(network.output, batch=True)
    foot = ("total", shape, f"{total.parameters:,}", quantity(total.multiply_adds), memory(total))
    calls = [textwrap.wrap(line[0], WIDEST_CALL, subsequent_indent="    ", break_long_words=False) for line in body]
    lengths = [len(piece) for call in calls for piece in call]
    widths = [max(8, *lengths), *(max(len(line[column]) for line in (head, *body, foot)) for column in range(1, 5))]

    def line(cells: tuple[str, ...]) -> str:
        left = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
        return "  ".join([*left, *right]).rstrip()

    lines = []
    for cells, call in zip(body, calls, strict=True):
        lines += [line((call[0], *cells[1:])), *call[1:]]
    rule = "─" * (sum(widths) + 8)
    title = f"{network.name}: {show(network.input, batch=True)} → {show(network.output, batch=True)}"
    said = [f"  · {one}" for one in remarks(network)]
    return "\n".join([title, "", line(head), rule, *lines, rule, line(foot), *said])
