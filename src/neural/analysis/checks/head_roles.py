"""Roles of heads, by what they attend to: previous token, induction, local and others."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, FindingKind, Symptom
from neural.analysis.head_roles import assign_head_roles, find_head_roles, format_head
from neural.runs.run import Run


class HeadRoles(DiagnosticCheck):
    """Share of heads with a role at the end; analysis/head_roles.py defines the roles.

    Uniform heads have none: `uniform_attention` reports them.
    """

    code: ClassVar[str] = "ATT008"
    claim: ClassVar[str] = "heads have roles"
    unit: ClassVar[str] = "of the heads"
    kind: ClassVar[FindingKind] = "note"

    def find_symptom(self, run: Run) -> Symptom | None:
        """Every head with a role, its first and last score, and the step since which it has it."""
        roles = find_head_roles(run)
        names = assign_head_roles(roles)
        descriptions = []
        for layer, head in np.argwhere(~np.isin(names, ["mixed", "uniform", ""])):
            role = roles[names[layer, head]]
            scores, onset = role.scores[:, layer, head], role.find_onset_step(layer, head)
            descriptions.append(
                f"{format_head(layer, head)} {role.name} "
                f"({scores[0]:.2f} → {scores[-1]:.2f}, since step {onset:,})"
            )
        if not descriptions:
            return None
        more = f" and {len(descriptions) - 12} more" if len(descriptions) > 12 else ""
        share = len(descriptions) / int((names != "").sum())
        return Symptom(share, ", ".join(descriptions[:12]) + more)
