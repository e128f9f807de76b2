"""Results of patching experiments: arrays, tables, JSON, a page and a heat map.

result["heads"].restored, result["positions"].p      arrays
result.to_dataframe(), result.to_dict(), result.save("page.html")
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural.analysis.patching_effects import UnitEffects
from neural.capture.path_patching import LocatedHead, Through
from neural.core.errors import TaskError
from neural.core.files import write_atomically
from neural.report.patching_plot import render_page, render_svg
from neural.workflows.patching_pairs import METRIC_UNITS, TokenPair

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


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


@dataclass(frozen=True, eq=False)
class PatchingResult:
    """The result of a patching experiment; `result["heads"]` is a sweep."""

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

    def __repr__(self) -> str:
        used = int(self.is_used.sum())
        sweeps = ", ".join(
            f"{kind}: {int(sweep.effects.has_effect.sum())} of {len(sweep.units)} with an effect"
            for kind, sweep in self.sweeps.items()
        )
        return (
            f"patching of {self.model}, {self.metric}, {used} of {len(self.pairs)} pairs; {sweeps}"
        )

    def list_rows(self, kind: str | None = None) -> list[dict[str, Any]]:
        """A row per unit: names, restored share, interval, p."""
        rows = []
        for name, sweep in self.sweeps.items():
            if kind in (None, name):
                for index, unit in enumerate(sweep.units):
                    rows.append(
                        {"sweep": name, **self._name(unit), **_get_row(sweep.effects, index)}
                    )
        return rows

    def list_path_rows(self) -> list[dict[str, Any]]:
        """A row per path."""
        if self.paths is None:
            return []
        return [
            {
                "sender": str(path.sender),
                "receiver": str(path.receiver),
                "through": path.through,
                **_get_row(self.paths.effects, index),
            }
            for index, path in enumerate(self.paths.paths)
        ]

    def _name(self, unit: Unit) -> dict[str, Any]:
        position = None if unit.position is None else len(self.labels) + unit.position
        return {
            "layer": unit.layer,
            "head": unit.head,
            "position": position,
            "token": None if position is None else self.labels[position],
        }

    def to_dataframe(self, kind: str | None = None) -> Any:
        """A pandas DataFrame with a row per unit; `kind` selects a sweep, or "paths"."""
        if find_spec("pandas") is None:
            raise TaskError("to_dataframe needs pandas: pip install pandas")
        import pandas  # optional, and slow to import

        return pandas.DataFrame(self.list_path_rows() if kind == "paths" else self.list_rows(kind))

    def to_dict(self) -> dict[str, Any]:
        """JSON data; NaN becomes None."""
        return {
            "model": self.model,
            "source": self.source,
            "metric": self.metric,
            "unit": METRIC_UNITS.get(self.metric, self.metric),
            "pairs": [
                {
                    "clean": _join_labels(pair.clean_labels),
                    "corrupted": _join_labels(pair.corrupted_labels),
                    "clean_metric": _to_json(clean),
                    "corrupted_metric": _to_json(corrupted),
                    "used": bool(is_used),
                }
                for pair, clean, corrupted, is_used in zip(
                    self.pairs, self.clean, self.corrupted, self.is_used, strict=True
                )
            ],
            "layers": self.layers,
            "tokens": self.labels,
            "sweeps": {kind: self.list_rows(kind) for kind in self.sweeps},
            "paths": self.list_path_rows(),
            "notes": self.notes,
        }

    def save(self, path: str | Path) -> Path:
        """Write a page (.html), the heat map (.svg) or the numbers (.json). Returns the path."""
        path = Path(path)
        suffix = path.suffix.lower()
        data = self.to_dict()
        if suffix in (".html", ".htm"):
            content = render_page(data)
        elif suffix == ".svg":
            content = render_svg(data)
        elif suffix == ".json":
            content = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        else:
            raise TaskError(
                f"{path}: write .html, .svg or .json, such as {path.with_suffix('.html')}"
            )
        try:
            write_atomically(path, content, durable=False)
        except OSError as error:
            raise TaskError(f"{path} cannot be written: {error.strerror}") from None
        return path


def _get_row(effects: UnitEffects, index: int) -> dict[str, Any]:
    """The numbers of one unit; NaN becomes None."""
    names = ("restored", "standard_error", "low", "high", "mismatched", "p")
    row: dict[str, Any] = {name: _to_json(getattr(effects, name)[index]) for name in names}
    return {**row, "effect": bool(effects.has_effect[index])}


def _to_json(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _join_labels(labels: Sequence[str]) -> str:
    """Tokens as a text; with blanks between them if the tokens have none."""
    has_blanks = any(label[:1].isspace() for label in labels)
    are_characters = all(len(label) <= 1 for label in labels)
    return ("" if has_blanks or are_characters else " ").join(labels)
