"""Headlines of `neural.track`: heads that found a role in somebody's own training loop."""

from __future__ import annotations

from collections.abc import Sequence

from neural.report.headline import ExperimentGroup, Headline, HeadlineWriter
from neural.report.role_counts import (
    build_role_grid,
    count_head_roles,
    describe_roles,
    link_clearest_head,
)
from neural.runs.run import Run
from neural.stats.estimate import format_number

LOSS_NAMES = ("valid/loss", "train/loss")
"""Losses in the order of preference."""


class Tracked(HeadlineWriter):
    """Heads with a role, and how far the loss fell; several groups as other tasks do."""

    def write(self, groups: Sequence[ExperimentGroup]) -> Headline:
        """The headline of one training; of several, their best scores."""
        if len(groups) > 1:
            return super().write(groups)
        (group,) = groups
        run, run_id = group.runs[0], group.run_ids[0]
        roles = [counts for each in group.runs if (counts := count_head_roles(each)) is not None]
        if not roles:
            return super().write(groups)
        loss = _describe_loss(run)
        details = [loss] if loss else []
        details += [roles[0].explain_roles()] if roles[0].heads else []
        has_maps = bool(run.map_steps())
        return Headline(
            text=describe_roles(roles),
            details=details,
            figures=[build_role_grid(run, run_id, roles[0])] if has_maps else [],
            link=link_clearest_head("watch the heads develop", run_id, roles[0])
            if has_maps
            else None,
        )


def _describe_loss(run: Run) -> str:
    """First and last value of the loss; "" if none was logged."""
    for name in LOSS_NAMES:
        if name in run.scalar_names():
            values = run.scalars(name)[1]
            return f"{name}: {format_number(float(values[0]))} → {format_number(float(values[-1]))}"
    return ""
