"""Headlines of `neural watch --save`: what the heads of a model do, and since which checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from neural.report.headline import ExperimentGroup, Headline, HeadlineWriter
from neural.report.role_counts import (
    build_role_grid,
    count_head_roles,
    describe_roles,
    link_clearest_head,
)


class Watched(HeadlineWriter):
    """Heads with a role; nothing was trained here, so there is no score."""

    def write(self, groups: Sequence[ExperimentGroup]) -> Headline:
        """The headline of the first model; the others have rows in the table."""
        run, run_id = groups[0].runs[0], groups[0].run_ids[0]
        roles = count_head_roles(run)
        if roles is None:
            return Headline(text="No attention was captured")
        others = sum(len(group.runs) for group in groups) - 1
        details = [roles.explain_roles()] if roles.heads else []
        details += [f"{groups[0].label}; {others} more below"] if others else []
        return Headline(
            text=describe_roles([roles]),
            details=details,
            figures=[build_role_grid(run, run_id, roles)] if run.map_steps() else [],
            link=link_clearest_head("all heads", run_id, roles) if run.map_steps() else None,
        )
