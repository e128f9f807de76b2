"""Reference of attention measures: definition, formula, unit and bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator

from neural.capture.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure, StackMeasure
from neural.capture.measures import registry

from .markdown import docstring, join_paragraphs, table

EXAMPLE_HEADS, EXAMPLE_KEYS = 8, 1024
SUBJECTS: dict[type[Measure], str] = {
    HeadMeasure: "each head",
    LayerMeasure: "the heads of a layer together",
    PairMeasure: "two layers, head by head",
    StackMeasure: "all layers together",
}
INTRODUCTION = """
A measure has one value per row of an attention map; the reported value is the mean over the valid
rows. The measure is computed before the mean, never after it. A row is one query. `w` are its
weights over the keys, `j` is the position of a key, `i` that of the query, `K` the number of keys,
`H` the number of heads. `p` and `q` are the rows of two layers, `u` is the uniform row. Rows of
padding, rows without visible keys and rows for which a measure is undefined are left out; they do
not count as 0. Logarithms are natural unless the unit is bits.

Every formula is also code: `reference` in `src/neural/capture/measures/` defines the measure.
Training records values from a compiled pass that never stores the weights. A contract test checks
that both agree. How to measure any torch model: [watching attention](../watching.md). Other
metrics: [segmentation scores](../segmentation-measures.md), [focus](../focus.md#measures),
[generated text](../analysis.md#quality-of-generated-text).
"""


def pages() -> dict[str, str]:
    """One page with all measures."""
    measures = {name: registry.get(name) for name in registry.names()}
    rows = [
        [f"[`{name}`](#{name})", measure.unit, _describe_subject(measure), measure.summary()]
        for name, measure in measures.items()
    ]
    overview = table(["", "unit", "of", ""], rows)
    sections = [
        join_paragraphs(*_format_section(name, measure)) for name, measure in measures.items()
    ]
    return {"measures": join_paragraphs("# Measures", INTRODUCTION.strip(), overview, *sections)}


def _format_section(name: str, measure: type[Measure]) -> Iterator[str]:
    low, high = measure().value_range(EXAMPLE_HEADS, EXAMPLE_KEYS)
    bounds = docstring(measure.value_range)
    if (low, high) != measure().value_range(2, 3):  # the bounds depend on the sizes
        sizes = f"{EXAMPLE_HEADS} heads and {EXAMPLE_KEYS:,} keys"
        bounds += f" With {sizes}: {_format_number(low)} to {_format_number(high)}."
    yield f"## {name} {{ #{name} }}"
    yield docstring(measure)
    yield table(
        ["", ""],
        [
            ["formula", docstring(measure.reference)],
            ["unit", measure.unit],
            ["bounds", bounds],
            ["of", _describe_subject(measure)],
        ],
    )


def _describe_subject(measure: type[Measure]) -> str:
    return next(words for kind, words in SUBJECTS.items() if issubclass(measure, kind))


def _format_number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.4g}"
