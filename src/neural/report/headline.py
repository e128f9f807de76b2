"""Headline of an experiment: its result in one sentence with a number, pictures and a link.

An experiment is all runs of one task on one data set. Its groups are runs that differ only by
their seed, or by the fold of a cross-validation. A headline is written from findings
(findings/findings.py) and recorded scores, so it says nothing that the page does not show.

A file in report/headlines/, named like a task, writes the headlines of that task; other tasks have
the headline of `HeadlineWriter`: their best score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from neural.findings.check import FigureData, Finding, ViewLink
from neural.findings.findings import FindingList
from neural.findings.run_summary import get_current_step
from neural.language.declaration import RegistryEntry
from neural.report.group_scores import (
    GroupScore,
    compare_with_best,
    load_group_score,
    rank_groups,
)
from neural.runs.run import Run
from neural.stats.estimate import format_number
from neural.stats.means import MIN_SEEDS

MAX_LISTED_GROUPS = 4
"""Groups listed in a sentence; further ones are only counted."""
METRIC_NAMES = {
    "loss": "loss",
    "f1": "F1",
    "accuracy": "accuracy",
    "mae": "mean absolute error",
    "saif": "SAIF",
}
"""Metric without `valid/` → its name in sentences; others are written as they are."""


@dataclass(frozen=True, kw_only=True)
class ExperimentGroup:
    """Runs of an experiment that differ only by their seed or fold."""

    label: str
    runs: Sequence[Run]
    run_ids: Sequence[str]
    """Ids of the runs on the page."""
    findings: FindingList

    @cached_property
    def score(self) -> GroupScore | None:
        """Scores of the monitored metric; None without a validation."""
        return load_group_score(self.runs)

    def get_finding(self, code: str) -> Finding | None:
        """The finding of a check if the runs support it."""
        return next(
            (
                finding
                for finding in self.findings
                if finding.code == code and finding.supported == "yes"
            ),
            None,
        )


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
        scored = {group.label: group.score for group in groups if group.score is not None}
        link = ViewLink("all curves", {"pane": "curves", "run": groups[0].run_ids[0]})
        if not scored:
            return Headline(text=describe_missing_score(groups), link=link)
        return Headline(
            text=describe_scores(scored, describe_metric(next(iter(scored.values())).name)),
            details=describe_states(groups),
            figures=build_score_figures(scored),
            link=link,
        )

    def build_data(self, groups: Sequence[ExperimentGroup]) -> dict[str, Any]:
        """Further JSON data of the experiment, for a pane of its task; none by default."""
        return {}


def describe_metric(name: str) -> str:
    """Name of a metric in a sentence: `valid/f1` is "validation F1"."""
    short = name.removeprefix("valid/")
    return "validation " + METRIC_NAMES.get(short, short.replace("_", " "))


def describe_scores(
    scores: dict[str, GroupScore],
    metric: str,
    *,
    unit: str = "",
    in_percent: bool = False,
    format_value: Callable[[float], str] = format_number,
) -> str:
    """One sentence about the scores of groups by label; `unit` stands after the numbers.

    `format_value` is for means without an interval.

    A winner is named only if it is better than every other group by a paired test over at least
    MIN_SEEDS seeds or folds; otherwise the groups are listed.
    """
    suffix = f" {unit}" if unit else ""
    ranked = rank_groups(scores)
    means = {
        label: format_mean(scores[label], in_percent=in_percent, format_value=format_value)
        for label in ranked
    }
    failures = {
        label: f" ({scores[label].failed_share:.0%} of its runs failed)"
        if scores[label].failed_share
        else ""
        for label in ranked
    }
    if len(ranked) == 1:
        (label,) = ranked
        return (
            f"{capitalize(metric)} {means[label]}{suffix}"
            f"{describe_repetitions(scores[label], in_percent=in_percent)}{failures[label]}"
        )
    listed = [f"{label} {means[label]}{failures[label]}" for label in ranked[:MAX_LISTED_GROUPS]]
    rest = len(ranked) - len(listed)
    more = f" and {rest} more up to {means[ranked[-1]]}" if rest else ""
    has_enough = all(score.estimate().n >= MIN_SEEDS for score in scores.values())
    comparisons = compare_with_best(scores) if has_enough else {}
    if comparisons and all(comparison.verdict == "worse" for comparison in comparisons.values()):
        superlative = "highest" if scores[ranked[0]].larger_is_better else "lowest"
        listed[0] = f"{means[ranked[0]]}{suffix}"
        return f"{ranked[0]} has the {superlative} {metric}: {', '.join(listed)}{more}"
    return f"{capitalize(metric)}: {', '.join(listed)}{suffix}{more}"


def format_mean(
    score: GroupScore,
    *,
    in_percent: bool = False,
    format_value: Callable[[float], str] = format_number,
) -> str:
    """The mean as it is written before its interval: "0.953", "95.3 %"."""
    estimate = score.estimate()
    if in_percent:
        return f"{estimate.to_percent().format_value()} %"
    return estimate.format_value() if estimate.has_interval else format_value(estimate.value)


def describe_repetitions(score: GroupScore, *, in_percent: bool = False) -> str:
    """What a mean is over, with its interval: ", mean of 5 seeds (0.94 … 0.96)"; "" for one run."""
    if len(score.values) < 2:
        return ""
    estimate = score.estimate()
    folds = score.fold_count is not None
    count = len(score.scores) if folds else len(score.values)
    text = f", mean of {count} {'folds' if folds else 'seeds'}"
    if not estimate.has_interval:
        return text
    if in_percent:
        return f"{text} ({estimate.to_percent().format_interval()} %)"
    return f"{text} ({estimate.format_interval()})"


def describe_missing_score(groups: Sequence[ExperimentGroup]) -> str:
    """Why an experiment has no score yet."""
    runs = [run for group in groups for run in group.runs]
    states = Counter(run.status.state for run in runs)
    for state in ("failed", "lost"):
        if states[state] == len(runs):
            run = runs[0]
            reason = f": {run.status.message}" if run.status.message and state == "failed" else ""
            which = "Training" if len(runs) == 1 else f"All {len(runs)} trainings"
            verb = "failed" if state == "failed" else "ended without notice"
            step = f" at step {get_current_step(run):,}" if len(runs) == 1 else ""
            return f"{which} {verb}{step}{reason}"
    if states["running"]:
        return f"{describe_progress(runs)}; no validation yet"
    return "No validation yet"


def describe_states(groups: Sequence[ExperimentGroup]) -> list[str]:
    """Sentences about runs that are not finished; empty if all are."""
    runs = [run for group in groups for run in group.runs]
    sentences = []
    running = [run for run in runs if run.status.state == "running"]
    if running:
        sentences.append(f"{describe_progress(running)}; scores are those so far")
    for state, verb in (("failed", "failed"), ("lost", "ended without notice"), ("stopped", "")):
        affected = [run for run in runs if run.status.state == state]
        if not affected:
            continue
        if len(runs) == 1:
            (run,) = affected
            reason = f": {run.status.message}" if run.status.message else ""
            step = f"step {get_current_step(run):,}"
            sentences.append(f"Training {verb or 'was stopped'} at {step}{reason}")
        else:
            verb = verb or ("was stopped" if len(affected) == 1 else "were stopped")
            sentences.append(f"{len(affected)} of {len(runs)} runs {verb}")
    return sentences


def describe_progress(runs: Sequence[Run]) -> str:
    """How far trainings are: "Training: step 120 of 360"."""
    if len(runs) > 1:
        running = sum(run.status.state == "running" for run in runs)
        return f"{running} training{'s' * (running != 1)} running"
    steps = runs[0].metadata("steps")
    of_all = f" of {steps:,}" if steps else ""
    return f"Training: step {get_current_step(runs[0]):,}{of_all}"


def build_score_figures(scores: dict[str, GroupScore]) -> list[FigureData]:
    """Means of several groups as dots with intervals; no figure for one group.

    Without an interval, for which there are too few seeds, the seeds are dots of their own.
    """
    if len(scores) < 2:
        return []
    ranked = rank_groups(scores)[:MAX_LISTED_GROUPS]
    rows = []
    for label in ranked:
        number = scores[label].estimate().to_dict("seeds")
        values = scores[label].values if number["low"] is None else []
        rows.append({"label": label, "number": number, "values": values})
    return [{"kind": "estimates", "unit": next(iter(scores.values())).name, "rows": rows}]


def capitalize(text: str) -> str:
    """The text with a capital first letter; the rest is unchanged."""
    return text[:1].upper() + text[1:]
