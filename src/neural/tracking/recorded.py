"""A run folder as readers see it, also while it is written: settings, curves, measures, maps, checkpoints."""

from __future__ import annotations

import math
import os
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from neural.core.names import did_you_mean
from neural.tracking import checkpoint
from neural.tracking.checkpoint import Checkpoint, Saved
from neural.tracking.folder import CHECKPOINTS, json_of, status_of, text_of
from neural.tracking.status import Status
from neural.tracking.store import Store
from neural.tracking.trouble import RunError, RunWarning, in_words

WIDER = 1 << 10
"""Times the numbers of a measure that it may take with its gaps filled, where its shape changed on the way."""


HALVES = "halves/"
"""Before the name of a measure: its mean over all heads, on two halves of the probe."""
HEAD_DIVERGENCE = "heads/divergence"
"""How differently every two heads look, layer after layer: capture writes it beside the measures."""


class Recorded:
    """What was asked for, what was measured, what was learned. `Run.open` gives it."""

    def __init__(self, path: Path, store: Store) -> None:
        self.path, self._store = path, store

    @property
    def name(self) -> str:
        """The folder's name, of which what is no text is shown as such: it may be any bytes."""
        return os.fsencode(self.path.name).decode("utf-8", errors="replace")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All settings, defaults included, as they were resolved."""
        return json_of(self.path / "settings.json")

    @cached_property
    def program(self) -> str | None:
        """The network as it was written, where it was."""
        return text_of(self.path / "program.neural")

    @property
    def network_name(self) -> str | None:
        """Which network of the program, where it has several."""
        said = self.settings.get("network_name")
        return said if isinstance(said, str) else None

    @cached_property
    def environment(self) -> dict[str, Any]:
        """What it was made with."""
        return json_of(self.path / "environment.json")

    @property
    def status(self) -> Status:
        """As of now."""
        return status_of(self.path, self._store)

    def changes(self) -> int:
        """Another number whenever its writer has written rows; asking costs no reading."""
        return self._store.changes()

    def names(self) -> list[str]:
        """Of all scalars."""
        return self._store.names()

    def scalars(self, name: str, *, after: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of one curve, from the first step past `after`."""
        steps, values = self._store.scalars(name, after)
        return steps, values if len(steps) else self._known(name, self.names(), "scalar", values)

    def rows(self) -> list[tuple[int, str, float]]:
        """Every scalar as (step, name, value), in order."""
        return self._store.rows()

    def measures(self) -> list[str]:
        """Names of the measures of attention. Other arrays have a `/` in their names; `measure` reads those too."""
        return [name for name in self._store.measures() if "/" not in name]

    def measure(self, name: str, *, after: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Steps and one array [step, layer, head]; NaN where shapes differ between steps and a smaller one ends."""
        steps, arrays = self._store.arrays(name, after)
        if not arrays:
            return steps, self._known(name, self._store.measures(), "measure", np.empty(0))
        try:
            return steps, _stacked(arrays)
        except ValueError as wrong:
            raise RunError(f"{self.path}: the measure `{name}` is damaged: {wrong}") from None

    def halves(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps and means of a measure on two halves of the probe, [step, 2]; empty where they were not measured."""
        if HALVES + name not in self._store.measures():
            return np.empty(0, dtype=np.int64), np.empty((0, 2))
        return self.measure(HALVES + name)

    def map_steps(self) -> list[int]:
        """Steps with maps."""
        return self._store.map_steps()

    def maps(self, step: int) -> dict[str, bytes]:
        """Packed maps of a step by name."""
        return self._store.maps(step)

    def events(self) -> list[tuple[int, str, str, float]]:
        """Step, kind, text and time (seconds since 1970) of each, in order."""
        return self._store.events()

    def described(self, key: str, default: Any = None) -> Any:
        """What was described under that key; the default, with a RunWarning, where that cannot be used."""
        values, problems = self._store.described()
        if key in problems:
            warnings.warn(f"{self.path}: rows.sqlite: {problems[key]}; it is left out", RunWarning, stacklevel=2)
        return values.get(key, default)

    def checkpoints(self) -> list[Saved]:
        """Those in the folder, oldest first."""
        with in_words(f"{self.path} cannot be read"):
            return checkpoint.listed(self.path / CHECKPOINTS)

    def restore(self, which: Literal["newest", "best"] | int = "newest") -> Checkpoint | None:
        """A whole checkpoint, or None where there is none. For the newest, broken ones are passed over."""
        folder = self.path / CHECKPOINTS
        with in_words(f"{folder} cannot be read"):
            if which == "newest":
                return checkpoint.newest(folder)
            if which == "best":
                return checkpoint.best_one(folder)
            there = checkpoint.steps(folder)
            if which not in there:
                raise RunError(f"{self.path} has no checkpoint of step {which}, only of {there or 'none'}")
            return checkpoint.read(folder, which)

    def close(self) -> None:
        """Let go of the folder."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _known(self, name: str, names: list[str], noun: str, nothing: np.ndarray) -> np.ndarray:
        if name not in names:
            guess = did_you_mean(name, names)
            raise RunError(f"{self.path} has no {noun} `{name}`" + (f"; {guess}" if guess else ""))
        return nothing


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    if len({one.shape for one in arrays}) == 1:
        return np.stack(arrays)
    axes = max(one.ndim for one in arrays)
    full = [one.reshape(one.shape + (1,) * (axes - one.ndim)) for one in arrays]
    sizes = [max(one.shape[axis] for one in full) for axis in range(axes)]
    if len(full) * math.prod(sizes) > WIDER * (sum(one.size for one in full) + WIDER):
        raise ValueError(f"its shapes differ too much to be of one network: {arrays[0].shape}, … , {tuple(sizes)}")
    stacked = np.full((len(full), *sizes), np.nan, dtype=np.float32)
    for row, one in zip(stacked, full, strict=True):
        row[tuple(slice(size) for size in one.shape)] = one
    return stacked
