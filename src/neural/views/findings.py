"""All analyses of some runs, as a table to read and as JSON.

    print(findings_table([Run.open(path) for path in paths]))
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence

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
    for one in findings(runs):
        lines.append(f"{one.code}  {one.supported:<9}  {one.claim}")
        number = f"{one.number} {one.unit}; " if math.isfinite(one.number.value) else ""
        said = number + one.evidence + (f" → {one.advice}" if one.advice and one.supported == "undecided" else "")
        lines += textwrap.wrap(said, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines) + "\n"


def findings_json(runs: Sequence[Run]) -> str:
    """The same for machines."""
    return json.dumps([one.as_json() for one in findings(runs)], indent=1, ensure_ascii=False) + "\n"
