"""Base class of the checks of the importance of heads (codes CAU…).

The importance of a head is the change of the loss when it is removed. `neural ablate` measures it
at the kept checkpoints of a run; findings/head_necessity.py decides what it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.findings.check import DiagnosticCheck, Finding, FindingKind, Importance, ViewLink
from neural.findings.head_necessity import (
    MIN_EXAMPLES,
    HeadNecessity,
    has_importance,
    load_necessity,
)
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError


class ImportanceCheck(DiagnosticCheck):
    """Base class of checks of the importance of heads; for runs in which it was measured."""

    kind: ClassVar[FindingKind] = "note"
    importance: ClassVar[Importance] = "none"

    @classmethod
    def applies_to(cls, run: Record) -> bool:
        """Whether `neural ablate` has measured the run."""
        return has_importance(run)

    def load(self, run: Record) -> HeadNecessity:
        """Decisions about the run's heads; MissingDataError without enough examples."""
        necessity = load_necessity(run)
        examples = necessity.record.examples
        if examples < MIN_EXAMPLES:
            raise MissingDataError(
                f"{run.name} has no importance of {MIN_EXAMPLES} examples or more, but of "
                f"{examples}; measure more with `neural ablate`"
            )
        return necessity

    def list_links(self, finding: Finding, runs: Sequence[Record]) -> list[ViewLink]:
        """The marked heads, and the importance of all heads over training."""
        pane = [
            ViewLink("importance over training", {"pane": "importance", "run": run})
            for run, _ in finding.symptoms[:1]
        ]
        return [*super().list_links(finding, runs), *pane]
