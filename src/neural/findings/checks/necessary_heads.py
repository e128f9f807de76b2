"""Heads without which the loss rises: since when, and since when they have their role.

The importance of a head is the change of the loss when it is removed (`neural ablate`);
findings/head_necessity.py decides.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_necessity import (
    HeadIndex,
    HeadNecessity,
    HeadRole,
    format_change,
    load_roles,
)
from neural.findings.head_roles import format_head
from neural.findings.importance_checks import ImportanceCheck
from neural.findings.record import Record

MAX_QUOTED_HEADS = 8
"""Heads quoted in the evidence; further ones are only counted."""


class NecessaryHeads(ImportanceCheck):
    """Reports heads without which the loss is higher at the last measured step.

    The change is above 0 beyond chance, with a correction for the number of heads, and at least 1 %
    of what the model has learned: the loss of guessing by frequencies minus its own. Early signs
    may come long before most of it: the evidence also has the step since which the head has had
    half of its importance. The number is the share of such heads.
    """

    code: ClassVar[str] = "CAU001"
    claim: ClassVar[str] = "heads are necessary"
    unit: ClassVar[str] = "of the heads"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find the necessary heads, the most important first."""
        necessity, roles = self.load(run), load_roles(run)
        heads = necessity.list_necessary_heads()
        if not heads:
            return None
        descriptions, marks = [], []
        for head in heads:
            detail = _describe_head(necessity, head, roles.get(head))
            descriptions.append(f"{format_head(*head)} is necessary: {detail}")
            marks.append(
                mark_head(
                    *head,
                    roles[head].name if head in roles else "necessary",
                    detail=detail,
                    onset=necessity.find_onset_step(*head),
                )
            )
        unquoted = len(heads) - MAX_QUOTED_HEADS
        more = f" and {unquoted} more" if unquoted > 0 else ""
        head_count = int(np.isfinite(necessity.record.change[-1]).sum())
        return Symptom(
            len(heads) / head_count,
            "; ".join(descriptions[:MAX_QUOTED_HEADS]) + more,
            text=f"{len(heads)} of {head_count} heads",
            figure=build_head_grid(run, marks, tone="note"),
        )


def _describe_head(necessity: HeadNecessity, head: HeadIndex, role: HeadRole | None) -> str:
    """What is lost without a head, since when, and its role."""
    record = necessity.record
    change = format_change(
        float(record.change[-1, *head]), float(record.se[-1, *head]), record.header.unit
    )
    text = f"without it the {record.header.metric} rises by {change}"
    onset = necessity.find_onset_index(*head)
    if onset is not None and len(record.steps) > 1:
        text += f", since step {record.steps[onset]:,}"
        text += ", the first measured" if onset == 0 else ""
        half = necessity.find_half_step(*head)
        if half is not None and half > record.steps[onset]:
            text += f", half of it since step {half:,}"
    return f"{text}, and {role.describe()}" if role else text
