"""Reference of findings: every check of `neural analyze` and the report, by code."""

from __future__ import annotations

from collections.abc import Iterator

from neural.findings.check import AnalysisCheck
from neural.findings.checks import registry

from .markdown import docstring, join_paragraphs, table

KIND_DESCRIPTIONS = {
    "warning": "a warning about one run; it does not depend on other seeds",
    "note": "a note about one run; it does not depend on other seeds",
    "claim": "a claim about all runs of an experiment: yes, no or undecided; needs five seeds or "
    "more",
}
INTRODUCTION = """
A finding has a stable code, a value with its unit and interval, the evidence in words, and advice
in the form of an experiment. `neural analyze RUN…`, the report and the board show findings.
[Analysis](../analysis.md) explains how values, intervals and verdicts are computed. Codes of
errors in programs and experiment files have [a page of their own](diagnostics.md).
"""


def pages() -> dict[str, str]:
    """One page with all findings, by code."""
    checks = sorted((registry.get(name) for name in registry.names()), key=lambda check: check.code)
    rows = [[f"[{check.code}](#{check.code.lower()})", check.kind, check.claim] for check in checks]
    overview = table(["code", "kind", "finding"], rows)
    sections = [join_paragraphs(*_format_section(check)) for check in checks]
    return {"findings": join_paragraphs("# Findings", INTRODUCTION.strip(), overview, *sections)}


def _format_section(check: type[AnalysisCheck]) -> Iterator[str]:
    yield f"## {check.code}: {check.claim} {{ #{check.code.lower()} }}"
    rows = [
        ["check", docstring(check)],
        ["unit", check.unit],
        ["kind", KIND_DESCRIPTIONS[check.kind]],
    ]
    yield table(["", ""], [*rows, *([["advice", check.advice]] if check.advice else [])])
