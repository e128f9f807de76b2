"""What runs can be found to show: every code that `neural analyze` and the report know."""

from __future__ import annotations

from collections.abc import Iterator

from neural.views.analysis import registry
from neural.views.finding import Analysis

from .pieces import doc, joined, table

KINDS = {
    "warning": "a warning about one run, whatever other seeds do",
    "note": "a note about one run, whatever other seeds do",
    "claim": "a claim about all trainings of this kind: yes, no or undecided; fewer than five seeds decide nothing",
}
LEAD = """
A finding has a code that stays, a number with its unit and interval, the evidence in words, and advice that is an
experiment. `neural analyze RUN…`, the report and the board show them; how numbers, intervals and verdicts come about is
told under [what runs say](../analysis.md). Codes of mistakes in programs and experiment files are
[on their own page](mistakes.md).
"""


def pages() -> dict[str, str]:
    """One page with all findings, by code."""
    entries = sorted((registry.get(name) for name in registry.names()), key=lambda entry: entry.code)
    rows = [[f"[{one.code}](#{one.code.lower()})", one.kind, one.claim] for one in entries]
    parts = [joined(*_section(one)) for one in entries]
    return {"findings": joined("# Findings", LEAD.strip(), table(["code", "kind", "finding"], rows), *parts)}


def _section(entry: type[Analysis]) -> Iterator[str]:
    yield f"## {entry.code}: {entry.claim} {{ #{entry.code.lower()} }}"
    rows = [["number", doc(entry)], ["unit", entry.unit], ["kind", KINDS[entry.kind]]]
    yield table(["", ""], [*rows, *([["advice", entry.advice]] if entry.advice else [])])
