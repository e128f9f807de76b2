"""All analyses of some runs, as a table to read and as JSON.

    print(findings_table([Run.open(path) for path in paths]))
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Sequence

from neural.tracking.run import Run
from neural.views.analysis import registry
from neural.views.finding import Finding
from neural.views.reading import seed_of

WIDTH = 110


def findings(runs: Sequence[Run]) -> list[Finding]:
    """What every analysis says about runs that differ by their seed alone, by code."""
    found = [registry.get(name)().analyze(runs) for name in registry.names()]
    return sorted((one for one in found if one is not None), key=lambda one: one.code)


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
        said = figure + one.evidence + (f" → {one.advice}" if one.advice and one.supported == "undecided" else "")
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
