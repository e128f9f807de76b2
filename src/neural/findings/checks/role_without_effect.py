"""Heads with a role whose removal does not change the loss.

A role says where a head attends, not whether the model uses what it finds there. The importance of
a head is the change of the loss when it is removed (`neural ablate`).
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_necessity import (
    find_roles_without_effect,
    format_change,
    load_roles,
)
from neural.findings.head_roles import format_head
from neural.findings.importance_checks import ImportanceCheck
from neural.findings.record import Record


class RoleWithoutEffect(ImportanceCheck):
    """Reports heads that have a role and whose removal does not change the loss.

    The change lies within ± 1 % of what the model has learned, by an equivalence test at the last
    measured step; a change that is merely uncertain is not reported. Heads of a redundant pair are
    left out. The number is the share of the heads with a role.
    """

    code: ClassVar[str] = "CAU002"
    claim: ClassVar[str] = "heads have a role without effect"
    unit: ClassVar[str] = "of the heads with a role"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find the heads with a role and without effect."""
        necessity, roles = self.load(run), load_roles(run)
        heads = find_roles_without_effect(necessity, roles)
        if not heads:
            return None
        record = necessity.record
        smallest = f"{necessity.smallest_change:.2g} {record.header.unit}"
        descriptions, marks = [], []
        for head in heads:
            change = format_change(
                float(record.change[-1, *head]), float(record.se[-1, *head]), record.header.unit
            )
            role = roles[head]
            detail = f"without it the {record.header.metric} changes by {change}"
            descriptions.append(f"{format_head(*head)} is {role.noun}, but {detail}")
            marks.append(mark_head(*head, role.name, detail=detail, onset=role.onset))
        return Symptom(
            len(heads) / len(roles),
            f"{'; '.join(descriptions)}: less than {smallest}, 1 % of what the model has learned",
            text=f"{len(heads)} of {len(roles)} heads with a role",
            figure=build_head_grid(run, marks, tone="note"),
        )
