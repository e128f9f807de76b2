"""What is wrong with the focus of paradigms that were compared: the diagnoses of single runs, asked of their means."""

from __future__ import annotations

import math
from dataclasses import dataclass

from neural.views.analysis import registry
from neural.views.focus_results import Groups, estimate, time_to
from neural.views.focus_trouble import FocusDiagnosis, Standing


@dataclass(frozen=True)
class Warned:
    """A finding about one paradigm at one m."""

    code: str
    paradigm: str
    segments: int
    evidence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.code}  {self.paradigm}, m = {self.segments}: {self.evidence} → {self.advice}"


def warnings(groups: Groups) -> list[Warned]:
    """All that there is to warn of, by code."""
    entries = [registry.get(name) for name in registry.names()]
    asked = [entry() for entry in entries if issubclass(entry, FocusDiagnosis)]
    found: list[Warned] = []
    for (name, m), group in groups.items():
        scores = {key: estimate(group, key).value for key in sorted({key for one in group for key in one.scores})}
        if "focus_accuracy" not in scores:
            continue
        if "switched" in scores:   # a seed that never switched counts as the latest
            middle = time_to(group, "switched").median
            scores["switched"] = math.nan if math.isinf(middle) else middle
        stands = Standing(paradigm=name, classes=group[0].classes, scores=scores)
        told = [(one, one.trouble(stands)) for one in asked]
        basis = f"over {len(group)} seeds" if len(group) > 1 else "1 seed"
        found += [
            Warned(one.code, name, m, f"{seen.evidence} ({basis})", one.advice)
            for one, seen in told
            if seen is not None
        ]
    return sorted(found, key=lambda one: one.code)
