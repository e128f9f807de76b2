"""What is measured of attention: definition, formula, unit and bounds of every measure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from neural.tracking.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure, StackMeasure
from neural.tracking.measures import registry

from .pieces import doc, joined, table

HEADS, KEYS = 8, 1024
OF: dict[type[Measure], str] = {
    HeadMeasure: "each head", LayerMeasure: "the heads of a layer together", PairMeasure: "two layers, head by head",
    StackMeasure: "all layers together",
}  # fmt: skip
LEAD = """
One value per row of an attention map, then the mean over the rows that count: the average comes after the measure,
never before. A row is one query; `w` are its weights over the keys, `j` is the position of a key, `i` that of the
query, `K` the number of keys, `H` of heads; `p` and `q` are the rows of two layers, `u` is the uniform row. Rows of
padding, rows with nothing to look at and rows of which the question makes no sense are left out, not counted as 0.
Logarithms are natural unless bits are said.

Every formula below is also code: `plain` in `src/neural/tracking/measures/` defines the measure. What training records
comes from a compiled pass that never writes the weights out, and a contract test holds that the two agree. How to
measure any torch model: [watching](../watching.md). Other numbers:
[scores of segmentations](../segmentation-measures.md), [of focus models](../focus.md#measures),
[of written text](../analysis.md#quality-of-generated-text).
"""


def pages() -> dict[str, str]:
    """One page with all measures."""
    entries = {name: registry.get(name) for name in registry.names()}
    rows = [[f"[`{name}`](#{name})", one.unit, _of(one), one.summary()] for name, one in entries.items()]
    sections = [joined(*_section(name, one)) for name, one in entries.items()]
    return {"measures": joined("# Measures", LEAD.strip(), table(["", "unit", "of", ""], rows), *sections)}


def _section(name: str, entry: type[Measure]) -> Iterator[str]:
    low, high = entry().bounds(HEADS, KEYS)
    said = doc(entry.bounds)
    if (low, high) != entry().bounds(2, 3):
        said += f" With {HEADS} heads and {KEYS:,} keys: {_number(low)} to {_number(high)}."
    yield f"## {name} {{ #{name} }}"
    yield doc(entry)
    yield table(["", ""], [["formula", doc(entry.plain)], ["unit", entry.unit], ["bounds", said], ["of", _of(entry)]])


def _of(entry: type[Measure]) -> str:
    return next(words for kind, words in OF.items() if issubclass(entry, kind))


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.4g}"
