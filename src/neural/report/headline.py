"""Headline of an experiment: its result in one sentence with a number, pictures and a link.

An experiment is all runs of one task on one data set. Its groups are runs that differ only by
their seed. A headline is written from findings (analysis/findings.py) and recorded scores, so it
says nothing that the page does not show.

A file in report/headlines/, named like a task, writes the headlines of that task; other tasks have
the headline of `HeadlineWriter`: their best score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from neural.analysis.check import FigureData, ViewLink
from neural.analysis.confidence_intervals import format_number
from neural.analysis.findings import FindingList
from neural.analysis.run_summary import summarize_run
from neural.language.declaration import RegistryEntry
from neural.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class ExperimentGroup:
    """Runs of an experiment that differ only by their seed."""

    label: str
    runs: Sequence[Run]
    run_ids: Sequence[str]
    """Ids of the runs on the page."""
    findings: FindingList


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The result of an experiment in one sentence."""

    text: str
    details: list[str] = field(default_factory=list)
    figures: list[FigureData] = field(default_factory=list)
    link: ViewLink | None = None


class HeadlineWriter(RegistryEntry):
    """Writes the headline of experiments of one task. This base class is for any task."""

    def write(self, groups: Sequence[ExperimentGroup]) -> Headline:
        """The headline of an experiment; `groups` are not empty."""
        best: Mapping[str, float] = {
            group.label: summary["best"]["score"]
            for group in groups
            for run in group.runs[:1]
            if (summary := summarize_run(run))["best"]
        }
        link = ViewLink("curves", {"pane": "curves", "run": groups[0].run_ids[0]})
        if not best:
            return Headline(text="No validation yet", link=link)
        scores = ", ".join(f"{label} {format_number(score)}" for label, score in best.items())
        return Headline(text=f"Best validation score: {scores}", link=link)
