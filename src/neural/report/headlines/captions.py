"""Headlines of captioning: how often generated captions are right and words find their region."""

from __future__ import annotations

from collections.abc import Sequence

from neural.findings.check import ViewLink
from neural.report.group_scores import load_group_score
from neural.report.headline import (
    ExperimentGroup,
    Headline,
    HeadlineWriter,
    build_score_figures,
    describe_missing_score,
    describe_repetitions,
    describe_scores,
    describe_states,
    format_mean,
)

CAPTION_ACCURACY = ("valid/caption_accuracy", True)
FOCUS_ACCURACY = ("valid/focus_accuracy", True)
"""Metrics of the task `captions`, and whether larger is better."""


class Captions(HeadlineWriter):
    """The share of captions that equal a reference, and of words located in the right region."""

    def write(self, groups: Sequence[ExperimentGroup]) -> Headline:
        """The headline of an experiment; other tasks' headline if a run recorded neither score."""
        link = ViewLink("all curves", {"pane": "curves", "run": groups[0].run_ids[0]})
        if all(group.score is None for group in groups):
            return Headline(text=describe_missing_score(groups), link=link)
        loaded = {
            metric: {
                group.label: score
                for group in groups
                if (score := load_group_score(group.runs, metric)) is not None
            }
            for metric in (CAPTION_ACCURACY, FOCUS_ACCURACY)
        }
        captions, focus = loaded.values()
        if not captions:
            return super().write(groups)
        if len(groups) == 1:
            (score,) = captions.values()
            text = (
                f"Describes {format_mean(score, in_percent=True)} of the held-out pictures "
                f"exactly like a reference{describe_repetitions(score, in_percent=True)}"
            )
        else:
            text = describe_scores(captions, "share of exact captions", in_percent=True)
        details = []
        if focus:
            located = describe_scores(focus, "words located in the right region", in_percent=True)
            details.append(located)
        return Headline(
            text=text,
            details=[*details, *describe_states(groups)],
            figures=build_score_figures(captions),
            link=link,
        )
