"""Heads that took over from others during training.

The importance of a head is the change of the loss when it is removed, measured at every kept
checkpoint (`neural ablate`).
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import Symptom
from neural.findings.figure_data import build_curve
from neural.findings.head_necessity import find_takeovers
from neural.findings.head_roles import format_head
from neural.findings.importance_checks import ImportanceCheck
from neural.findings.record import Record


class HeadTakeover(ImportanceCheck):
    """Reports heads that became necessary when another one stopped being necessary.

    Both happen within one measured checkpoint, the importance of both jumps by more than half, and
    the later one's new importance is between half and twice the earlier one's old one. The number
    is that of the takeovers. Unrelated heads may do the same at the same time: the evidence has the
    expected number of such coincidences, and above 0.2 nothing is reported.
    """

    code: ClassVar[str] = "CAU004"
    claim: ClassVar[str] = "a head took over from another"
    unit: ClassVar[str] = "takeovers"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find the takeovers, the earliest first; the picture shows both heads of the first one."""
        necessity = self.load(run)
        takeovers = find_takeovers(necessity)
        if not takeovers:
            return None
        record, unit = necessity.record, necessity.record.header.unit
        descriptions = [
            f"{format_head(*takeover.later)} took over from {format_head(*takeover.earlier)} at "
            f"step {takeover.step:,}: importance of {format_head(*takeover.earlier)} "
            f"{_format_jump(takeover.fall)}, of {format_head(*takeover.later)} "
            f"{_format_jump(takeover.rise)} {unit}"
            for takeover in takeovers
        ]
        chance = (
            "heads that rise and fall at independent times would do the same in about "
            f"{max(takeover.chance for takeover in takeovers):.0%} of such runs"
        )
        first = takeovers[0]
        figure = build_curve(
            series=[
                (format_head(*head), record.steps, record.change[:, *head])
                for head in (first.earlier, first.later)
            ],
            marks=[(first.step, "takeover")],
            y_label=f"change of the {record.header.metric} without the head, {unit}",
        )
        return Symptom(
            len(takeovers),
            f"{'; '.join(descriptions)}; {chance}",
            text=f"{len(takeovers)} takeover{'s' * (len(takeovers) != 1)}",
            figure=figure,
        )


def _format_jump(jump: tuple[int, float, float, float]) -> str:
    _, before, after, _ = jump
    # + 0.0 turns −0.0, which small negative numbers round to, into 0.0
    return f"{round(before, 2) + 0.0:.2f} → {round(after, 2) + 0.0:.2f}".replace("-", "−")
