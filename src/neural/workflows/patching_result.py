"""Results of patching experiments: arrays, tables, JSON, a page and a heat map.

result["heads"].restored, result["positions"].p      arrays
result.to_dataframe(), result.to_dict(), result.save("page.html")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from neural.capture.path_patching import LocatedHead, Through
from neural.core.files import write_atomically
from neural.core.page_section import PageSection
from neural.core.result import Result, to_json_data
from neural.core.table import Column, Table
from neural.findings.patching_effects import EFFECT_LEVEL, MIN_EFFECT_SHARE, UnitEffects
from neural.report.patching_plot import format_share, format_token, render_page, render_svg
from neural.workflows.patching_pairs import METRIC_UNITS, TokenPair

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


MAX_LISTED_UNITS = 16
"""Units that are printed for a sweep, those that restore or oppose most."""
SWEEP_NAMES = {
    "heads": "heads, at all positions",
    "positions": "heads × positions",
    "residual": "residual stream × positions",
}


class Unit(NamedTuple):
    """What is patched in one example; positions are counted from the end, −1 is the last."""

    layer: int
    head: int | None = None
    position: int | None = None


class PathUnit(NamedTuple):
    """A path from a head to another, or to the output."""

    sender: LocatedHead
    receiver: LocatedHead | str
    through: Through = "all"

    def __str__(self) -> str:
        part = "" if self.through == "all" else f" ({self.through})"
        return f"{self.sender} → {self.receiver}{part}"


@dataclass(frozen=True, eq=False)
class PatchingSweep:
    """Effects of all units of one kind, as arrays.

    [layer, head] for heads, [layer, head, position] for positions, [layer, position] for residual;
    NaN where a layer has fewer heads.
    """

    kind: str
    units: list[Unit]
    effects: UnitEffects
    shape: tuple[int, ...]

    def _fill(self, values: np.ndarray) -> np.ndarray:
        array = np.full(self.shape, np.nan)
        for unit, value in zip(self.units, values, strict=True):
            index = [unit.layer]
            index += [] if unit.head is None else [unit.head]
            index += [] if unit.position is None else [unit.position]  # negative: from the end
            array[tuple(index)] = value
        return array

    @property
    def restored(self) -> np.ndarray:
        """Mean restored shares: 0 changes nothing, 1 restores the clean metric."""
        return self._fill(self.effects.restored)

    @property
    def standard_error(self) -> np.ndarray:
        """Standard errors of `restored` over the pairs."""
        return self._fill(self.effects.standard_error)

    @property
    def low(self) -> np.ndarray:
        """Lower bounds of the 95 % intervals."""
        return self._fill(self.effects.low)

    @property
    def high(self) -> np.ndarray:
        """Upper bounds of the 95 % intervals."""
        return self._fill(self.effects.high)

    @property
    def mismatched(self) -> np.ndarray:
        """Mean shares that differences of other pairs change; NaN without a null."""
        return self._fill(self.effects.mismatched)

    @property
    def p(self) -> np.ndarray:
        """p-values against mismatched pairs, corrected for all units of the sweep."""
        return self._fill(self.effects.p)

    @property
    def has_effect(self) -> np.ndarray:
        """Whether a unit does more than with mismatched pairs, at a family-wise level of 5 %."""
        return self._fill(self.effects.has_effect.astype(float)) == 1


@dataclass(frozen=True, eq=False)
class PathEffects:
    """Effects of paths between heads."""

    paths: list[PathUnit]
    effects: UnitEffects


@dataclass(frozen=True, eq=False, repr=False)
class PatchingResult(Result):
    """The result of a patching experiment; `result["heads"]` is a sweep."""

    figure_suffixes: ClassVar = (".svg",)

    model: str
    """Name of the model."""
    source: str
    """Where its weights come from."""
    metric: str
    pairs: list[TokenPair]
    """All pairs, also those that were left out."""
    is_used: Bool[np.ndarray, " n"]
    """False for pairs whose clean and corrupted metrics differ too little."""
    clean: Float[np.ndarray, " n"]
    """The metric of the clean inputs."""
    corrupted: Float[np.ndarray, " n"]
    layers: list[str]
    """Path of the attention module of each layer."""
    labels: list[str]
    """Tokens of the positions of the first pair; the corrupted token after a slash."""
    sweeps: dict[str, PatchingSweep] = field(default_factory=dict)
    paths: PathEffects | None = None
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, kind: str) -> PatchingSweep:
        if kind not in self.sweeps:
            raise KeyError(f"no sweep `{kind}`: there are {', '.join(self.sweeps)}")
        return self.sweeps[kind]

    @property
    def tables(self) -> dict[str, Table]:
        """`units`: a row per patched unit of all sweeps; then each sweep, and `paths`."""
        sweeps = {
            kind: [
                (kind, *self._name(unit).values(), *_list_numbers(sweep.effects, index))
                for index, unit in enumerate(sweep.units)
            ]
            for kind, sweep in self.sweeps.items()
        }
        names = map(Column, ("sweep", "layer", "head", "position", "token"))
        columns = (*names, *EFFECT_COLUMNS)
        tables = {"units": Table(columns, [row for rows in sweeps.values() for row in rows])}
        tables |= {kind: Table(columns, rows) for kind, rows in sweeps.items()}
        if self.paths is not None:
            names = map(Column, ("sender", "receiver", "through"))
            rows = [
                (
                    str(path.sender),
                    str(path.receiver),
                    path.through,
                    *_list_numbers(self.paths.effects, index),
                )
                for index, path in enumerate(self.paths.paths)
            ]
            tables["paths"] = Table((*names, *EFFECT_COLUMNS), rows)
        return tables

    def _name(self, unit: Unit) -> dict[str, Any]:
        position = None if unit.position is None else len(self.labels) + unit.position
        return {
            "layer": unit.layer,
            "head": unit.head,
            "position": position,
            "token": None if position is None else self.labels[position],
        }

    def build_dict(self) -> dict[str, Any]:
        """Pairs, and a row for every unit and path."""
        tables = {kind: table.to_records() for kind, table in self.tables.items()}
        return {
            "model": self.model,
            "source": self.source,
            "metric": self.metric,
            "unit": METRIC_UNITS.get(self.metric, self.metric),
            "pairs": [
                {
                    "clean": _join_labels(pair.clean_labels),
                    "corrupted": _join_labels(pair.corrupted_labels),
                    "clean_metric": clean,
                    "corrupted_metric": corrupted,
                    "used": is_used,
                }
                for pair, clean, corrupted, is_used in zip(
                    self.pairs, self.clean, self.corrupted, self.is_used, strict=True
                )
            ],
            "layers": self.layers,
            "tokens": self.labels,
            "sweeps": {kind: tables[kind] for kind in self.sweeps},
            "paths": tables.get("paths", []),
            "notes": self.notes,
        }

    def to_sections(self, width: int) -> list[PageSection]:
        """A table of the units that restore most for every sweep, and one of the paths."""
        used = int(self.is_used.sum())
        clean, corrupted = (values[self.is_used].mean() for values in (self.clean, self.corrupted))
        source = f"{self.source}\n" if self.source else ""
        text = (
            f"{source}{used} of {len(self.pairs)} pair{'s' * (len(self.pairs) != 1)}; mean "
            f"{self.metric}: clean {clean:.3g}, corrupted {corrupted:.3g}".replace("-", "−")
        )
        notes = [f"note: {note}" for note in self.notes]
        sections = [PageSection(title=self.model, text="\n".join([text, *notes]))]
        tables = self.tables
        sections += [
            build_units_section(title, tables[kind].to_records())
            for kind, title in SWEEP_NAMES.items()
            if kind in self.sweeps
        ]
        rows = tables["paths"].to_records() if self.paths is not None else []
        if rows:
            cells = [
                (
                    f"{row['sender']} → {row['receiver']}",
                    row["through"],
                    *_format_numbers(row, rows),
                )
                for row in rows
            ]
            head = ("path", "through", *_number_header(rows))
            sections.append(PageSection(title="paths", table_head=head, table_rows=cells))
        return sections

    def render_page(self) -> str:
        """Heat maps of all sweeps, with their numbers."""
        return render_page(self.to_dict())

    def draw(self, path: Path) -> None:
        """The heat map as SVG."""
        write_atomically(path, render_svg(self.to_dict()), durable=False)


EFFECT_COLUMNS = (
    Column("restored", meaning="share of the clean metric that is restored"),
    Column("standard_error", meaning="over the pairs"),
    Column("low", meaning="95 % interval"),
    Column("high", meaning="95 % interval"),
    Column("mismatched", "other pairs", meaning="share that differences of other pairs restore"),
    Column("p", meaning="against mismatched pairs, corrected for all units of the sweep"),
    Column("effect", meaning="whether p is at most .05"),
)


def _list_numbers(effects: UnitEffects, index: int) -> tuple[Any, ...]:
    """The values of EFFECT_COLUMNS for one unit; NaN becomes None."""
    names = [column.name for column in EFFECT_COLUMNS[:-1]]
    values = to_json_data([getattr(effects, name)[index] for name in names])
    return (*values, bool(effects.has_effect[index]))


def build_units_section(title: str, rows: Sequence[Mapping[str, Any]]) -> PageSection:
    """The units that restore or oppose most, with interval and p; effects that are not shown."""
    visible = [row for row in rows if abs(row["restored"] or 0.0) >= MIN_EFFECT_SHARE]
    shown = sorted(visible, key=lambda row: -abs(row["restored"]))[:MAX_LISTED_UNITS]
    has_position = any(row["position"] is not None for row in rows)
    cells = []
    for row in shown:
        name = f"L{row['layer']}" + ("" if row["head"] is None else f" h{row['head']}")
        position = (
            [f"{row['position']} `{format_token(row['token'] or '')}`"] if has_position else []
        )
        cells.append((name, *position, *_format_numbers(row, rows)))
    lines = []
    if any(row["p"] is not None for row in rows):
        effects = sum(row["effect"] for row in rows)
        lines.append(
            f"{effects} of {len(rows)} have an effect beyond mismatched pairs (p ≤ {EFFECT_LEVEL})"
        )
    if not shown:
        lines.append(f"all restore less than {MIN_EFFECT_SHARE}")
    if len(visible) > len(shown):
        hidden = len(visible) - len(shown)
        lines.append(f"the {len(shown)} largest; {hidden} more with --json or -o page.html")
    return PageSection(
        title=title,
        text="\n".join(["", *lines]) if lines else "",
        table_head=("", *(["position"] if has_position else []), *_number_header(rows)),
        table_rows=cells,
    )


def _number_header(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    has_null = any(row["mismatched"] is not None for row in rows)
    return ("restored", "95 % interval", *(("other pairs", "p") if has_null else ()))


def _format_numbers(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    interval = ""
    if row["low"] is not None:
        interval = f"{format_share(row['low'])} … {format_share(row['high'])}"
    numbers = (format_share(row["restored"]), interval)
    if len(_number_header(rows)) == 2:
        return numbers
    p = "" if row["p"] is None else f"{row['p']:.2g}"
    return (*numbers, format_share(row["mismatched"]), p)


def _join_labels(labels: Sequence[str]) -> str:
    """Tokens as a text; with blanks between them if the tokens have none."""
    has_blanks = any(label[:1].isspace() for label in labels)
    are_characters = all(len(label) <= 1 for label in labels)
    return ("" if has_blanks or are_characters else " ").join(labels)
