"""Result of `neural ablate`: importance of the heads of one model, as tables, rows and JSON data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Column, Table, format_signed
from neural.runs.importance_file import (
    ImportanceHeader,
    ImportanceStep,
    PairImportance,
    encode_header,
    encode_step,
)

MAX_LISTED_HEADS, MAX_LISTED_PAIRS = 24, 10
"""Rows of the printed tables."""
PLAIN_ROLES = ("mixed", "")


@dataclass(frozen=True, repr=False)
class AblationResult(Result):
    """Importance of the heads of one model, at one or several checkpoints; prints as tables."""

    name: str
    header: ImportanceHeader
    steps: tuple[ImportanceStep, ...]
    """In ascending order; a model without checkpoints has step 0."""
    roles: np.ndarray
    """Name of the role of every head at the last step, [layer, head]; "" if it has none."""
    notes: tuple[str, ...] = ()
    saved: Path | None = None
    """The run folder that has the result; None if it was not saved."""

    @property
    def last(self) -> ImportanceStep:
        """Importance at the last step."""
        return self.steps[-1]

    def build_dict(self) -> dict[str, Any]:
        """All numbers, in the format of `importance.json`."""
        return {
            "name": self.name,
            **encode_header(self.header),
            "roles": [
                [str(role) for role in row[:count]]
                for row, count in zip(self.roles, self.header.heads, strict=True)
            ],
            "notes": list(self.notes),
            "steps": [encode_step(step, self.header.heads) for step in self.steps],
        }

    @property
    def tables(self) -> dict[str, Table]:
        """`heads`: a row per step, layer and head."""
        unit, names = (
            self.header.unit,
            list(dict.fromkeys(n for s in self.steps for n in s.classes)),
        )
        columns = [
            Column("step"),
            Column("layer"),
            Column("head"),
            Column("path", meaning="the attention module"),
            Column("role", meaning="what the head does at the last step"),
            Column(
                "change", unit=unit, meaning="of the loss without the head", format=format_signed
            ),
            Column("standard_error", "± se", unit, "over the examples", "{:.4f}".format),
            Column("gradient", unit=unit, meaning="estimate of the change", format=format_signed),
        ]
        for name in names:
            columns.append(
                Column(name, unit=unit, meaning=f"change for {name}", format=format_signed)
            )
            columns.append(Column(f"{name}, se", unit=unit, meaning="its standard error"))
        rows = []
        for step in self.steps:
            for layer, head in self._list_heads():
                row: list[Any] = [step.step, layer, head, self.header.layers[layer]]
                row.append(str(self.roles[layer, head]) if step is self.last else "")
                row += (
                    float(array[layer, head]) for array in (step.change, step.se, step.gradient)
                )
                for name in names:
                    values = step.classes.get(name)
                    is_known = values is not None
                    row.append(float(values.change[layer, head]) if is_known else math.nan)
                    row.append(float(values.se[layer, head]) if is_known else math.nan)
                rows.append(row)
        return {"heads": Table(tuple(columns), rows)}

    def to_sections(self, width: int) -> list[PageSection]:
        """A table of the heads at the last step, and one of pairs."""
        step, header = self.last, self.header
        heads = [head for head in self._list_heads() if np.isfinite(step.change[head])]
        # a score such as a cosine has no good direction: heads that lower it count as much
        is_score = header.metric.startswith("−")
        heads.sort(key=lambda head: -abs(step.change[head]) if is_score else -step.change[head])
        lines = [
            f"importance of {len(heads)} heads: change of {'the ' * (header.metric == 'loss')}"
            f"{header.metric} without each" + f", in {header.unit}" * bool(header.unit),
            f"data: {header.data}",
            f"method: {header.method}; ± standard error over {header.examples} examples",
            f"{header.metric} {step.loss:.4f} ± {step.loss_se:.4f}".replace("-", "−")
            + (f" at step {step.step:,}" if step.step else "")
            + (f"; chance {header.chance_loss:.4f}" if header.chance_loss is not None else ""),
            *(f"note: {note}" for note in self.notes),
        ]
        if len(heads) > MAX_LISTED_HEADS:
            hidden = len(heads) - MAX_LISTED_HEADS
            lines.append(f"the {MAX_LISTED_HEADS} most important; {hidden} more with -o heads.csv")
        rows = [self._format_head(head) for head in heads[:MAX_LISTED_HEADS]]
        head_row = ("", "change", "± se", "gradient", "role", "most for")
        sections = [
            PageSection(
                title=self.name, text="\n".join(lines), table_head=head_row, table_rows=rows
            )
        ]
        if len(self.steps) > 1:
            sections.append(self._build_series_section(heads))
        if step.pairs:
            sections.append(_build_pair_section(step.pairs, len(heads), header.metric, is_score))
        return sections

    def _list_heads(self) -> list[tuple[int, int]]:
        return [
            (layer, head) for layer, count in enumerate(self.header.heads) for head in range(count)
        ]

    def _format_head(self, head: tuple[int, int]) -> tuple[str, ...]:
        step, role = self.last, str(self.roles[head])
        return (
            f"L{head[0]} h{head[1]}",
            format_signed(step.change[head]),
            f"{step.se[head]:.4f}",
            format_signed(step.gradient[head]),
            "" if role in PLAIN_ROLES else role,
            _find_strongest_class(step, head),
        )

    def _build_series_section(self, heads: Sequence[tuple[int, int]]) -> PageSection:
        shown = heads[:6]
        rows = [
            (
                f"{step.step:,}",
                f"{step.loss:.4f}",
                *(format_signed(step.change[head]) for head in shown),
            )
            for step in self.steps
        ]
        names = [f"L{layer} h{head}" for layer, head in shown]
        return PageSection(
            title="over training",
            text="the heads that matter most at the end",
            table_head=("step", "loss", *names),
            table_rows=rows,
        )


def _find_strongest_class(step: ImportanceStep, head: tuple[int, int]) -> str:
    """The token class for which a head matters clearly more than for all targets, or nothing."""
    best, largest = "", 0.0
    for name, values in step.classes.items():
        excess = values.change[head] - step.change[head]
        error = math.hypot(values.se[head], step.se[head])
        if math.isfinite(error) and excess > max(2 * error, largest):
            best, largest = f"{name} {format_signed(values.change[head])}", excess
    return best


def _build_pair_section(
    pairs: Sequence[PairImportance], heads: int, metric: str, is_score: bool
) -> PageSection:
    """The pairs with the largest interactions.

    The sum of singles is that of the examples on which the pair was measured, of printed digits.
    """
    rows = [
        (
            f"L{pair.first[0]} h{pair.first[1]}, L{pair.second[0]} h{pair.second[1]}",
            format_signed(pair.both),
            format_signed(round(pair.both, 4) - round(pair.interaction, 4)),
            format_signed(pair.interaction),
            f"{pair.interaction_se:.4f}",
        )
        for pair in pairs[:MAX_LISTED_PAIRS]
    ]
    count = len(pairs)
    every = heads * (heads - 1) // 2
    # heads change a score in either direction, so the sign does not tell whether both do the same
    meaning = (
        f"above 0, removing one raises {metric} more when the other is removed, too; below 0, less"
        if is_score
        else "above 0, one head can stand in for the other; below 0, both are needed for the same "
        "thing"
    )
    return PageSection(
        title="pairs",
        text=f"the largest interactions of {count} measured pairs of {every}: both − first − "
        f"second\n{meaning}",
        table_head=("", "both", "sum of singles", "interaction", "± se"),
        table_rows=rows,
    )
