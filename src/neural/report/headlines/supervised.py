"""Headlines of classification and regression: how good predictions on held-out examples are."""

from __future__ import annotations

from collections.abc import Sequence

from neural.findings.check import ViewLink
from neural.report.group_scores import GroupScore, load_group_score
from neural.report.headline import (
    ExperimentGroup,
    Headline,
    HeadlineWriter,
    build_score_figures,
    capitalize,
    describe_metric,
    describe_missing_score,
    describe_repetitions,
    describe_scores,
    describe_states,
    format_mean,
)
from neural.report.role_counts import count_head_roles, describe_roles

ACCURACY, ABSOLUTE_ERROR = ("valid/accuracy", True), ("valid/mae", False)
"""The metrics of classification and of regression, and whether larger is better."""


class Supervised(HeadlineWriter):
    """Accuracy in percent, or the mean absolute error; the loss where neither was recorded."""

    def write(self, groups: Sequence[ExperimentGroup]) -> Headline:
        """The headline of an experiment; one metric for all groups."""
        link = ViewLink("all curves", {"pane": "curves", "run": groups[0].run_ids[0]})
        for metric in (ACCURACY, ABSOLUTE_ERROR, None):
            loaded = {group.label: load_group_score(group.runs, metric) for group in groups}
            scores = {label: score for label, score in loaded.items() if score is not None}
            if scores:
                break
        else:
            return Headline(text=describe_missing_score(groups), link=link)
        details = [*_describe_doubts(groups), *_describe_attention(groups)]
        return Headline(
            text=_describe(scores),
            details=[*details, *describe_states(groups)],
            figures=build_score_figures(scores),
            link=link,
        )


def _describe(scores: dict[str, GroupScore]) -> str:
    first = next(iter(scores.values()))
    if first.name == ACCURACY[0]:
        if len(scores) > 1:
            return describe_scores(scores, "validation accuracy", in_percent=True)
        return (
            f"Classifies {format_mean(first, in_percent=True)} of the held-out examples correctly"
            f"{describe_repetitions(first, in_percent=True)}"
        )
    if first.name == ABSOLUTE_ERROR[0] and len(scores) == 1:
        return (
            f"Predicts held-out values with a mean absolute error of "
            f"{format_mean(first)}{describe_repetitions(first)}"
        )
    return describe_scores(scores, describe_metric(first.name))


def _describe_doubts(groups: Sequence[ExperimentGroup]) -> list[str]:
    """Warnings that the score says little: no better than chance or than the largest class."""
    doubts = {
        "TRN004": "the validation loss is not clearly below chance",
        "TRN005": "always answering the most frequent class would be as good",
    }
    sentences = []
    for code, text in doubts.items():
        labels = [group.label for group in groups if group.get_finding(code) is not None]
        if labels:
            subject = "" if len(groups) == 1 else f"{', '.join(labels)}: "
            sentences.append(subject + text if subject else capitalize(text))
    return sentences


def _describe_attention(groups: Sequence[ExperimentGroup]) -> list[str]:
    """What the heads of a single network do; nothing for several or without attention."""
    if len(groups) > 1:
        return []
    counts = [roles for run in groups[0].runs if (roles := count_head_roles(run)) is not None]
    return [describe_roles(counts)] if counts else []
