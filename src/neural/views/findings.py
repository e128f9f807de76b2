"""All analyses of some runs, as a table to read and as JSON.

    print(findings_table([Run.open(path) for path in paths]))
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Collection, Iterator, Sequence

from neural.tracking.run import Run
from neural.views.analysis import registry
from neural.views.finding import Finding, Kind
from neural.views.page import table, verdict, with_small
from neural.views.reading import seed_of

WIDTH = 110


class Findings(list[Finding]):
    """Findings, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [(one.code, with_small(one.claim, one.evidence + (f" → {one.advice}" if one.advice else "")), one.kind,
                 verdict(one.supported), one.figure) for one in self]  # fmt: skip
        return table(("", "finding", "kind", "", "number"), rows)


def findings(runs: Sequence[Run], kinds: Collection[Kind] = ("claim", "warning", "note")) -> Findings:
    """What every analysis says about runs that differ by their seed alone, by code."""
    asked = [entry for entry in map(registry.get, registry.names()) if entry.kind in kinds]
    found = [entry().analyze(runs) for entry in asked]
    return Findings(sorted((one for one in found if one is not None), key=lambda one: one.code))


def claims(runs: Sequence[Run]) -> Findings:
    """Those alone that are about all trainings of this kind, by code."""
    return findings(runs, ("claim",))


def silent(found: Sequence[Finding]) -> list[str]:
    """What was looked for and is not among the findings, as claims in the order of their codes."""
    there = {one.code for one in found}
    every = sorted((registry.get(name) for name in registry.names()), key=lambda entry: entry.code)
    return [f"{entry.code} {entry.claim}" for entry in every if entry.code not in there]


def findings_table(runs: Sequence[Run]) -> str:
    """Claim, verdict, number with its interval over seeds, and the evidence in words."""
    seeds = [seed_of(run) for run in runs]
    known = f", seeds {', '.join(map(str, seeds))}" if None not in seeds else ""
    states = [(run.name, run.status.state) for run in runs]
    lines = [f"{len(runs)} run{'s' * (len(runs) != 1)}{known}; intervals are 95 %, over seeds"]
    lines += [f"not finished: {name} ({state})" for name, state in states if state != "finished"] + [""]
    return "\n".join([*lines, *findings_lines(findings(runs))]) + "\n"


def findings_lines(found: Sequence[Finding]) -> Iterator[str]:
    """A claim with its verdict, and below it how that is known."""
    for one in found:
        yield f"{one.code}  {one.supported:<9}  {one.claim}"
        figure = f"{one.figure}; " if math.isfinite(one.number.value) else ""
        wanted = one.supported == ("undecided" if one.kind == "claim" else "yes")
        said = figure + one.evidence + (f" → {one.advice}" if one.advice and wanted else "")
        yield from textwrap.wrap(said, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)


def findings_markdown(found: Sequence[Finding]) -> str:
    """As a table for a page of text."""
    lines = ["| code | claim | supported | number | evidence |", "|---|---|---|---|---|"]
    for one in found:
        cells = (one.code, one.claim, one.supported, one.figure, one.evidence)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def findings_json(runs: Sequence[Run]) -> str:
    """The same for machines."""
    return json.dumps([one.as_json() for one in findings(runs)], indent=1, ensure_ascii=False) + "\n"
