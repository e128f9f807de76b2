"""Headlines of language models: how many heads found a role, and how far the loss fell.

The roles of heads are those of findings/head_roles.py. Without attention the loss is the headline;
with several settings, their losses are.
"""

from __future__ import annotations

from collections.abc import Sequence

from neural.findings.check import FigureData, ViewLink
from neural.findings.run_loading import LOSS_METRIC
from neural.findings.sample_quality import SAMPLES_KEY
from neural.report.headline import (
    ExperimentGroup,
    Headline,
    HeadlineWriter,
    build_score_figures,
    capitalize,
    describe_missing_score,
    describe_repetitions,
    describe_scores,
    describe_states,
    format_mean,
)
from neural.report.role_counts import (
    RoleCounts,
    build_role_grid,
    count_head_roles,
    describe_roles,
    link_clearest_head,
)
from neural.runs.run import Run
from neural.stats.estimate import format_number

MAX_SAMPLE_LENGTH = 240
"""Characters of a sample on a card."""
MAX_START_SHARE = 0.02
"""A validation within this share of the training shows the loss before training."""


class LanguageModel(HeadlineWriter):
    """Heads with roles, the loss, and a sample before and after training."""

    def write(self, groups: Sequence[ExperimentGroup]) -> Headline:
        """The headline of language models."""
        if len(groups) > 1:
            return _compare_groups(groups)
        (group,) = groups
        run, run_id = group.runs[0], group.run_ids[0]
        roles = [counts for each in group.runs if (counts := count_head_roles(each)) is not None]
        loss = _describe_loss(group)
        if group.score is None:
            text, details = describe_missing_score(groups), []
        elif group.get_finding("TRN004") is not None:
            text = f"Learned little: its loss is not clearly below chance; {loss}"
            details = []
        elif roles:
            text, details = describe_roles(roles), [capitalize(loss)]
            tally = roles[0].format_tally()
            if tally and len(roles) > 1:
                details.append(f"First seed: {tally}")
            elif tally and not run.map_steps():  # otherwise the picture shows them
                details.append(f"Roles: {tally}")
            if tally:
                details.append(roles[0].explain_roles())
        else:
            text, details = capitalize(loss), []
        if group.score is not None:
            details += describe_states(groups)
        figures = [
            *([build_role_grid(run, run_id, roles[0])] if roles else []),
            *_build_samples(run, run_id),
        ]
        return Headline(
            text=text,
            details=details,
            figures=figures,
            link=_choose_link(run, run_id, roles[0] if roles else None),
        )


def get_loss_unit(run: Run) -> str:
    """Unit of the loss: nats per character or byte."""
    units = run.settings.get("units")
    return "nats per byte" if units == "bytes" else "nats per character"


def _compare_groups(groups: Sequence[ExperimentGroup]) -> Headline:
    scored = {group.label: group.score for group in groups if group.score is not None}
    link = ViewLink("all curves", {"pane": "curves", "run": groups[0].run_ids[0]})
    if not scored:
        return Headline(text=describe_missing_score(groups), link=link)
    units = {get_loss_unit(run) for group in groups for run in group.runs}
    return Headline(
        text=describe_scores(
            scored, "held-out loss", unit=units.pop() if len(units) == 1 else "nats"
        ),
        details=describe_states(groups),
        figures=build_score_figures(scored),
        link=link,
    )


def _describe_loss(group: ExperimentGroup) -> str:
    """The loss before and after training, in one clause; "" without a validation."""
    if group.score is None:
        return ""
    unit, after = get_loss_unit(group.runs[0]), group.score.estimate().value
    if len(group.score.values) > 1:
        mean = format_mean(group.score)
        return f"held-out loss {mean} {unit}{describe_repetitions(group.score)}"
    before = _find_first_loss(group.runs[0])
    if before is None or not after < before:
        return f"held-out loss {format_number(after)} {unit}"
    return f"loss fell from {format_number(before)} to {format_number(after)} {unit}"


def _find_first_loss(run: Run) -> float | None:
    """The loss before training: that of a validation near step 0, or of the first batch.

    An untrained model has seen no text, so its loss on the first batch is one on unknown text.
    """
    names = run.scalar_names()
    if LOSS_METRIC in names:
        steps, values = run.scalars(LOSS_METRIC)
        if steps[0] <= MAX_START_SHARE * (run.metadata("steps") or steps[-1]):
            return float(values[0])
    if "train/loss" not in names:
        return None
    steps, values = run.scalars("train/loss")
    return float(values[0]) if steps[0] <= 1 else None


def _build_samples(run: Run, run_id: str) -> list[FigureData]:
    """The first and the last sample."""
    samples = run.metadata(SAMPLES_KEY) or {}
    steps = sorted(map(int, samples))
    if not steps:
        return []
    chosen = [steps[0], steps[-1]] if len(steps) > 1 else steps
    texts = [
        {"step": step, "text": " ".join(samples[str(step)].split())[:MAX_SAMPLE_LENGTH]}
        for step in chosen
    ]
    return [{"kind": "samples", "run": run_id, "samples": texts}]


def _choose_link(run: Run, run_id: str, roles: RoleCounts | None) -> ViewLink:
    """The head with the clearest role, the samples, or the curves."""
    if roles is not None and run.map_steps():
        return link_clearest_head("watch the heads develop", run_id, roles)
    if run.metadata(SAMPLES_KEY):
        return ViewLink("samples of every step", {"pane": "samples", "run": run_id})
    return ViewLink("all curves", {"pane": "curves", "run": run_id})
