"""Advice about a run: what its user should do, most important first, each with evidence.

Advice comes from findings (check.py): a warning that was found, that says what to do, and whose
importance is not "none". So a check brings its own advice, also one of another package. Advice is
about these runs; claims, which generalise over seeds, are never advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import get_args

from neural.core.html_document import render_table, render_with_detail
from neural.findings.check import Finding, Importance

MAX_ADVICE = 5
"""Further advice is left out: the findings have it."""
IMPORTANCE_ORDER: tuple[Importance, ...] = get_args(Importance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing to do about a run."""

    code: str
    """Code of the finding, such as TRN007."""
    problem: str
    """What is wrong, or what could be better, in a few words."""
    evidence: str
    """The numbers and steps behind it."""
    action: str
    """What to try next: a command, or a key to set."""

    def to_dict(self) -> dict[str, str]:
        """JSON data."""
        return asdict(self)


class AdviceList(list[Advice]):
    """Advice, most important first. Printed as text; notebooks show a table."""

    def __str__(self) -> str:
        return "\n".join(
            f"{number}. {item.problem} ({item.code})\n   {item.evidence}\n   → {item.action}"
            for number, item in enumerate(self, 1)
        )

    def _repr_html_(self) -> str:
        rows = [
            (item.code, render_with_detail(item.problem, item.evidence), item.action)
            for item in self
        ]
        return render_table(("", "what to do", "try next"), rows)


def advise(findings: Sequence[Finding]) -> AdviceList:
    """At most MAX_ADVICE pieces of advice from the findings about a run, most important first.

    Of equal importance, the one with the smaller code comes first. Empty if nothing can be said.
    """
    actionable = [
        finding
        for finding in findings
        if finding.kind != "claim"
        and finding.supported == "yes"
        and finding.advice
        and finding.importance != "none"
    ]
    actionable.sort(key=lambda finding: (IMPORTANCE_ORDER.index(finding.importance), finding.code))
    return AdviceList(
        Advice(
            code=finding.code,
            problem=finding.claim,
            evidence=finding.evidence,
            action=finding.advice,
        )
        for finding in actionable[:MAX_ADVICE]
    )
