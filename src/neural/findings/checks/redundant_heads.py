"""Pairs of heads of which each can replace the other.

The importance of heads is the change of the loss when they are removed (`neural ablate`), here one
alone and both together.
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_necessity import find_redundant_pairs, format_change
from neural.findings.head_roles import format_head
from neural.findings.importance_checks import ImportanceCheck
from neural.findings.record import Record


class RedundantHeads(ImportanceCheck):
    """Reports pairs of heads whose removal costs nothing alone, but a lot together.

    Each change alone lies within ± 1 % of what the model has learned, by an equivalence test; both
    together are necessary, and so is the part that the changes alone do not explain. Only pairs
    that were measured count. The number is that of the pairs.
    """

    code: ClassVar[str] = "CAU003"
    claim: ClassVar[str] = "two heads are redundant"
    unit: ClassVar[str] = "pairs"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find the redundant pairs, the most expensive first."""
        necessity = self.load(run)
        pairs = find_redundant_pairs(necessity)
        if not pairs:
            return None
        record = necessity.record
        smallest = f"{necessity.smallest_change:.2g} {record.header.unit}"
        descriptions, marks = [], []
        for pair in pairs:
            names = [format_head(*head) for head in (pair.first, pair.second)]
            cost = format_change(pair.both, pair.both_error, record.header.unit)
            descriptions.append(
                f"{names[0]} and {names[1]}: either alone changes the {record.header.metric} by "
                f"less than {smallest}, both together cost {cost}"
            )
            for head, other in ((pair.first, names[1]), (pair.second, names[0])):
                marks.append(mark_head(*head, f"as {other}", detail=f"both together cost {cost}"))
        count = len(pairs)
        return Symptom(
            count,
            "; ".join(descriptions),
            text=f"{count} pair{'s' * (count != 1)}",
            figure=build_head_grid(run, marks, tone="note"),
        )
