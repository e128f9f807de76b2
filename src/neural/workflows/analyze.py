"""Analyze runs: findings with evidence and advice. Called by `neural analyze` and Python.

A finding (neural.findings.check) is a warning or note about these runs, or a claim about all
trainings of this kind, tested over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from neural.findings.advice import AdviceList, advise
from neural.findings.findings import (
    FINDING_KINDS,
    RUN_KINDS,
    FindingList,
    analyze_runs,
    format_findings,
    list_missing_claims,
)
from neural.findings.run_loading import group_experiments
from neural.runs.find import DEFAULT_RUNS_DIR, RunName, to_run_names
from neural.runs.run import Run
from neural.workflows.sweep import resolve_run_paths


@dataclass(frozen=True)
class FindingGroup:
    """Runs that differ in their seed alone, and the findings about them."""

    title: str
    """Data set and experiment."""
    runs: list[Run]
    findings: FindingList
    not_found: list[str]
    """Code and claim of the checks of these runs that found nothing."""


class Analysis(FindingList):
    """Result of `neural.analyze`: a list of findings, with the advice that follows from them."""

    def __init__(self, groups: Sequence[FindingGroup]) -> None:
        super().__init__(finding for group in groups for finding in group.findings)
        self.groups = list(groups)
        """The findings by experiment, if several were analyzed."""

    @cached_property
    def advice(self) -> AdviceList:
        """What to do about these runs, most important first."""
        return advise(self)

    def __repr__(self) -> str:
        lines: list[str] = [str(self.advice), ""] if self.advice else []
        for group in self.groups:
            names = ", ".join(run.name for run in group.runs)
            findings = list(format_findings(group.findings))
            checks = f"{len(group.not_found)} check{'s' * (len(group.not_found) != 1)}"
            lines += [f"{group.title} ({names})"]
            lines += findings or [f"  nothing notable in {checks}"]
        return "\n".join(lines)


def group_findings(runs: Sequence[Run], *, claims: bool = False) -> list[FindingGroup]:
    """The findings about runs, by experiment: data set and settings apart from the seed.

    With `claims`, also the tests of published claims about all trainings of this kind.
    """
    kinds = FINDING_KINDS if claims else RUN_KINDS
    groups = []
    for data, labels in group_experiments(runs).items():
        for label, members in labels.items():
            findings = analyze_runs(members, kinds)
            # a tracked training names no data set
            has_data = label != data and any(run.settings.get("data") for run in members)
            title = f"{data}: {label}" if has_data else label
            not_found = list_missing_claims(findings, members, kinds)
            groups.append(FindingGroup(title, members, findings, not_found))
    return groups


def analyze(
    run: RunName | Sequence[RunName] | None = None,
    *,
    runs: str | Path = DEFAULT_RUNS_DIR,
    claims: bool = False,
) -> Analysis:
    """Findings about a run, or about several, with evidence and advice.

        for finding in neural.analyze("Digits"):
            print(finding.code, finding.claim, finding.evidence)
        print(neural.analyze("Digits").advice)

    `run` is a run, its name or path, a sweep, or a list of them; the newest run by default. Runs
    that differ in their seed alone are analyzed together. Warnings and notes are about these runs.
    With `claims`, published claims about attention are tested, too: they generalise, and need five
    seeds or more. RunError if a run cannot be read.
    """
    with ExitStack() as stack:
        paths = resolve_run_paths(to_run_names(run), Path(runs), only_finished=True)
        opened_runs = [stack.enter_context(Run.open(path)) for path in paths]
        return Analysis(group_findings(opened_runs, claims=claims))
