"""Read a run folder: settings, curves, measures, maps, checkpoints; also while it is written.

A measure is a statistic of attention weights by layer and head; a map is the weights of a layer.
Both are recorded on the probe: fixed validation examples.
"""

from __future__ import annotations

import math
import os
import sqlite3
import warnings
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from neural.core.escape import escape_controls
from neural.core.metadata_fields import MetadataField
from neural.core.names import suggest_name
from neural.core.table import format_number, format_table
from neural.runs import checkpoint
from neural.runs.checkpoint import Checkpoint, CheckpointInfo
from neural.runs.errors import RunError, RunWarning, translate_errors
from neural.runs.folder import (
    CHECKPOINTS_DIR,
    load_status,
    read_json_file,
    read_text,
    verify_checksums,
)
from neural.runs.metadata_schema import GENERAL_FIELDS, collect_fields
from neural.runs.status import RunStatus
from neural.runs.store import RunStore

SHOWN_SCALARS = ("train/loss", "valid/")
"""Scalars that a run prints of itself, by the start of their names."""
MAX_PADDING_RATIO = 1 << 10
"""`measure` pads arrays of different shapes with NaN, to at most this many times their size."""
HALVES_PREFIX = "halves/"
"""Prefix of array names. The array holds a measure's mean over all heads, on each half of the
probe; their difference shows how much the measure depends on the examples."""
ROLES_PREFIX = "roles/"
"""Prefix of array names. The array holds the scores of one role (findings/head_roles.py), from all
examples of a capture; a training has none, its roles are computed from measures and maps."""
HEAD_DIVERGENCE_KEY = "heads/divergence"
"""Array name: distances between the attention of all pairs of heads, layer after layer."""


class RunReader:
    """A run folder for reading: settings, rows and checkpoints. Created by `Run.open`."""

    def __init__(self, path: Path, store: RunStore) -> None:
        self.path, self._store = path, store

    def __fspath__(self) -> str:
        """The path of the folder: a run can be passed wherever a path is expected."""
        return os.fspath(self.path)

    def __repr__(self) -> str:
        """Name, state and the last value of every score."""
        try:
            status = self.status
            task = self.settings.get("task", "unknown task")
            names = [name for name in self.scalar_names() if name.startswith(SHOWN_SCALARS)]
            last_values = [(name, *(column[-1] for column in self.scalars(name))) for name in names]
        except sqlite3.ProgrammingError:
            return f"run {escape_controls(self.name)}: closed"
        except RunError as error:
            return f"run {escape_controls(self.name)}: {escape_controls(str(error))}"
        lines = [f"run {escape_controls(self.name)}: {task}, {status.state}, step {status.step:,}"]
        if last_values:
            rows = [(name, format_number(value), f"{step:,}") for name, step, value in last_values]
            lines.append(format_table([("metric", "last value", "step"), *rows], (1, 2)))
        return "\n".join(lines)

    @property
    def name(self) -> str:
        """The folder's name; bytes that are not UTF-8 become U+FFFD."""
        return os.fsencode(self.path.name).decode("utf-8", errors="replace")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All settings, resolved, defaults included."""
        return read_json_file(self.path / "settings.json")

    @cached_property
    def program(self) -> str | None:
        """Source text of the network in the `.neural` language; None if the task has none."""
        return read_text(self.path / "program.neural")

    @property
    def network_name(self) -> str | None:
        """Name of the trained network, if the program has several."""
        name = self.settings.get("network_name")
        return name if isinstance(name, str) else None

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Versions, machine and command line."""
        return read_json_file(self.path / "environment.json")

    @property
    def status(self) -> RunStatus:
        """The present status; "lost" if the writing process is gone."""
        return load_status(self.path)

    def change_counter(self) -> int:
        """Change counter: differs after every commit. Cheap to read."""
        return self._store.change_counter()

    def snapshot(self) -> AbstractContextManager[None]:
        """All rows that are read inside belong to the same commit; not while writing.

        Without it, a commit between two reads can give the scalars of a step without its measures.
        """
        return self._store.snapshot()

    def scalar_names(self) -> list[str]:
        """Names of all scalars."""
        return self._store.scalar_names()

    def scalars(self, name: str, *, after: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of one curve, for steps > `after`. RunError for an unknown name."""
        steps, values = self._store.scalars(name, after)
        if not len(steps):
            self._require_known(name, self.scalar_names(), "scalar")
        return steps, values

    def scalar_rows(self) -> list[tuple[int, str, float]]:
        """Every scalar as (step, name, value), by step and name."""
        return self._store.scalar_rows()

    def measure_names(self) -> list[str]:
        """Names of the attention measures.

        Other arrays have a `/` in their names; `measure` reads them too.
        """
        return [name for name in self._store.array_names() if "/" not in name]

    def role_names(self) -> list[str]:
        """Names of the roles whose scores are stored."""
        names = self._store.array_names()
        return [name.removeprefix(ROLES_PREFIX) for name in names if name.startswith(ROLES_PREFIX)]

    def measure(self, name: str, *, after: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """The steps > `after`, and the measure's values as one array [step, layer, head].

        Steps whose arrays are smaller are padded with NaN.
        """
        steps, arrays = self._store.arrays(name, after)
        if not arrays:
            self._require_known(name, self._store.array_names(), "measure")
            return steps, np.empty(0)
        try:
            return steps, stack_padded(arrays)
        except ValueError as error:
            raise RunError(f"{self.path}: the measure `{name}` is damaged: {error}") from None

    def half_means(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps, and the means of a measure on the two halves of the probe, [step, 2].

        Both are empty if the run has no such means.
        """
        if HALVES_PREFIX + name not in self._store.array_names():
            return np.empty(0, dtype=np.int64), np.empty((0, 2))
        return self.measure(HALVES_PREFIX + name)

    def map_steps(self) -> list[int]:
        """Steps that have attention maps."""
        return self._store.map_steps()

    def maps(self, step: int) -> dict[str, bytes]:
        """Encoded maps of a step, by layer name; capture/map_encoding.py decodes them."""
        return self._store.maps(step)

    def events(self) -> list[tuple[int, str, str, float]]:
        """Step, kind, text and time (seconds since 1970) of each event, in order."""
        return self._store.events()

    @cached_property
    def metadata_fields(self) -> dict[str, MetadataField]:
        """Declared types of the metadata entries: the general ones and those of the run's task."""
        try:
            return collect_fields(self.settings.get("task"))
        except RunError:  # damaged settings: the general entries can still be read
            return GENERAL_FIELDS

    def metadata(self, key: str, default: Any = None) -> Any:
        """The metadata entry of a key; the default, with a RunWarning, if its type is wrong."""
        values, errors = self._store.read_metadata(self.metadata_fields)
        if key in errors:
            warnings.warn(
                f"{self.path}: rows.sqlite: {errors[key]}; it is left out",
                RunWarning,
                stacklevel=2,
            )
        return values.get(key, default)

    def verify_files(self) -> None:
        """RunError if settings, program or environment are not what was written."""
        verify_checksums(self.path, self._store)

    def checkpoints(self) -> list[CheckpointInfo]:
        """The checkpoints in the folder, oldest first, without their tensors."""
        with translate_errors(f"{self.path} cannot be read"):
            return checkpoint.list_checkpoints(self.path / CHECKPOINTS_DIR)

    def load_checkpoint(
        self, which: Literal["newest", "best"] | int = "newest"
    ) -> Checkpoint | None:
        """Read the newest undamaged checkpoint, the best one, or that of a step.

        None if there is none; RunError for a step without one.
        """
        folder = self.path / CHECKPOINTS_DIR
        with translate_errors(f"{folder} cannot be read"):
            if which == "newest":
                return checkpoint.read_newest(folder)
            if which == "best":
                return checkpoint.read_best(folder)
            steps = checkpoint.list_steps(folder)
            if which not in steps:
                raise RunError(
                    f"{self.path} has no checkpoint of step {which}, only of {steps or 'none'}"
                )
            return checkpoint.read_checkpoint(folder, which)

    def close(self) -> None:
        """Close the files."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_known(self, name: str, names: list[str], noun: str) -> None:
        if name not in names:
            suggestion = suggest_name(name, names)
            hint = f"; {suggestion}" if suggestion else ""
            raise RunError(f"{self.path} has no {noun} `{name}`{hint}")


def stack_padded(arrays: list[np.ndarray]) -> np.ndarray:
    """Stack arrays along a new first axis, padding smaller ones at the end with NaN."""
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    ndim = max(array.ndim for array in arrays)
    same_rank = [array.reshape(array.shape + (1,) * (ndim - array.ndim)) for array in arrays]
    sizes = [max(array.shape[axis] for array in same_rank) for axis in range(ndim)]
    # Forged shapes, such as (1, 10⁶) and (10⁶, 1), must not allocate their product. The second
    # summand allows small arrays of any shapes.
    stored_size = sum(array.size for array in same_rank)
    if len(same_rank) * math.prod(sizes) > MAX_PADDING_RATIO * (stored_size + MAX_PADDING_RATIO):
        raise ValueError(
            "its shapes differ too much to be of one network: "
            f"{arrays[0].shape}, … , {tuple(sizes)}"
        )
    stacked = np.full((len(same_rank), *sizes), np.nan, dtype=np.float32)
    for row, array in zip(stacked, same_rank, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return stacked
