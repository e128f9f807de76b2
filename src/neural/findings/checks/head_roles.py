"""Roles of heads, by what they attend to: previous token, induction, local and others.

findings/head_roles.py defines the roles: each has a score from 0 to 1 for a head at every recorded
step. A head without a role is "mixed"; "" marks positions where a layer has fewer heads.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, FindingKind, Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_roles import (
    ROLE_MEASURES,
    ROLES,
    ROLES_OF_NO_PATTERN,
    assign_head_roles,
    find_head_roles,
    format_head,
)
from neural.findings.record import Record

MAX_QUOTED_HEADS = 12
"""Heads quoted in the evidence; further ones are only counted."""


class HeadRoles(DiagnosticCheck):
    """Reports the heads that have a role at the end of training.

    The number is their share of all heads. The role "uniform" does not count: the check
    `uniform_attention` reports these heads. `neural explain role` defines the roles.
    """

    code: ClassVar[str] = "ATT008"
    claim: ClassVar[str] = "heads have roles"
    unit: ClassVar[str] = "of the heads"
    kind: ClassVar[FindingKind] = "note"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find the heads with a role; the evidence has role, first and last score, and onset."""
        roles = find_head_roles(run)
        names = assign_head_roles(roles)
        descriptions, marks = [], []
        for layer, head in np.argwhere(~np.isin(names, ROLES_OF_NO_PATTERN)):
            role = roles[names[layer, head]]
            scores, onset = role.scores[:, layer, head], role.find_onset_step(layer, head)
            detail = (
                f"{scores[0]:.2f} → {scores[-1]:.2f}, since step {onset:,}"
                if len(scores) > 1
                else f"{scores[0]:.2f}"
            )
            descriptions.append(f"{format_head(layer, head)} {role.name} ({detail})")
            marks.append(mark_head(layer, head, role.name, detail=detail, onset=onset))
        if not descriptions:
            return None
        unquoted = len(descriptions) - MAX_QUOTED_HEADS
        more = f" and {unquoted} more" if unquoted > 0 else ""
        head_count = int((names != "").sum())
        # a training stores maps of one example, a capture the scores of all
        from_maps = sorted(
            {name for name in names.flat if name in ROLES} - {*ROLE_MEASURES.values()}
        )
        if from_maps and not run.role_names():
            more += f"; {', '.join(from_maps)} on probe example 0"
        return Symptom(
            len(descriptions) / head_count,
            ", ".join(descriptions[:MAX_QUOTED_HEADS]) + more,
            text=f"{len(descriptions)} of {head_count} heads",
            figure=build_head_grid(run, marks, tone="note"),
        )
