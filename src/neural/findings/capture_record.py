"""Captures of attention in memory, read as a run is: checks and pages need no folder.

    record = CaptureRecord({0: capture}, name="gpt2")
    analyze_runs([record], RUN_KINDS)

Several captures are checkpoints of one model on the same input, by training step. Everything is
computed at its first use.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from neural.capture.capture_result import Capture
from neural.capture.snapshot_writer import (
    ARRAY_GROUPS,
    MAX_MAP_POSITIONS,
    collect_arrays,
    describe_axes,
    describe_capture,
    encode_maps,
)
from neural.capture.vector_encoding import VECTORS_KEY, encode_vectors
from neural.findings.capture_roles import score_capture
from neural.findings.record import WATCHED_TASK
from neural.runs.errors import RunError
from neural.runs.run_reader import HALVES_PREFIX, ROLES_PREFIX, stack_padded
from neural.runs.status import RunStatus

Arrays = dict[str, np.ndarray]


class CaptureRecord:
    """The record (findings/record.py) of one capture, or of a series of them, a step each."""

    path = None

    def __init__(
        self,
        captures: Mapping[int, Capture],
        *,
        name: str,
        example: int = 0,
        settings: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
        notes: Sequence[tuple[int, str]] = (),
    ) -> None:
        """`captures` by step. Maps are those of `example`, measures and roles are those of all.

        `settings` and `facts` (metadata) are added to those of the captures; `notes` are warnings
        by step.
        """
        self.captures, self.name, self.example = dict(sorted(captures.items())), name, example
        self.settings = {"task": WATCHED_TASK, **(settings or {})}
        self._facts, self._notes, self._created = dict(facts or {}), list(notes), time.time()
        self._arrays, self._maps = dict[str, dict[int, Arrays]](), dict[int, dict[str, bytes]]()

    @property
    def status(self) -> RunStatus:
        """A "snapshot", which has no time; a series is finished."""
        if len(self.captures) == 1:
            return RunStatus(state="snapshot", step=max(self.captures))
        times = {"time": self._created, "started": self._created}
        return RunStatus(state="finished", step=max(self.captures), **times)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All metadata but the queries and keys: those of the last capture, as of a run."""
        last = self.captures[max(self.captures)]
        axes = {"attention/axis_labels": describe_axes(last, self.example)}
        return axes | describe_capture(last, last.labels, self.example) | self._facts

    @cached_property
    def vectors(self) -> dict[str, Any]:
        """Queries and keys of the last capture (capture/vector_encoding.py)."""
        step = max(self.captures)
        layers = encode_vectors(
            self.captures[step], example=self.example, max_positions=MAX_MAP_POSITIONS
        )
        return {"step": step, "layers": layers}

    def metadata(self, key: str, default: Any = None) -> Any:
        """A fact about the captures."""
        return self.vectors if key == VECTORS_KEY else self.facts.get(key, default)

    def scalar_names(self) -> list[str]:
        """None: nothing was trained."""
        return []

    def scalars(self, name: str, *, after: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """RunError."""
        raise RunError(f"{self.name} has no scalar `{name}`")

    def _collect(self, group: str) -> dict[int, Arrays]:
        """The arrays of a group by step: the part of their names before `/`, "" for measures."""
        if group not in self._arrays:
            self._arrays[group] = {
                step: _score_roles(capture)
                if group == "roles"
                else collect_arrays(capture, group, self.example)
                for step, capture in self.captures.items()
            }
        return self._arrays[group]

    def arrays(self, step: int) -> Arrays:
        """All arrays of a step by name, as a run stores them."""
        groups = [self._collect(group)[step] for group in (*ARRAY_GROUPS, "roles")]
        return {name: values for group in groups for name, values in group.items()}

    def _list_names(self, group: str) -> list[str]:
        names = (name for arrays in self._collect(group).values() for name in arrays)
        return list(dict.fromkeys(names))

    def measure_names(self) -> list[str]:
        """Names of the attention measures."""
        return self._list_names("")

    def role_names(self) -> list[str]:
        """Names of the roles that something is known about."""
        return [name.removeprefix(ROLES_PREFIX) for name in self._list_names("roles")]

    def measure(self, name: str, *, after: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """The steps > `after`, and the values, [step, layer, head]; RunError for an unknown name."""
        group = name.partition("/")[0] if "/" in name else ""
        snapshots = self._collect(group).items()
        by_step = {step: arrays[name] for step, arrays in snapshots if name in arrays}
        if not by_step:
            raise RunError(f"{self.name} has no measure `{name}`")
        steps = [step for step in by_step if step > after]
        values = [np.asarray(by_step[step], np.float32) for step in steps]  # as a run stores them
        return np.array(steps, np.int64), stack_padded(values) if values else np.empty(0)

    def half_means(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps, and the means of a measure on two halves of the examples; empty without them."""
        try:
            return self.measure(HALVES_PREFIX + name)
        except RunError:
            return np.empty(0, np.int64), np.empty((0, 2))

    def map_steps(self) -> list[int]:
        """Steps of the captures that have weights."""
        return [
            step
            for step, capture in self.captures.items()
            if any(call.attention is not None for call in capture)
        ]

    def maps(self, step: int) -> dict[str, bytes]:
        """Encoded maps of the example, by layer name."""
        if step not in self._maps:
            self._maps[step] = encode_maps(self.captures[step], self.example)
        return self._maps[step]

    def events(self) -> list[tuple[int, str, str, float]]:
        """The notes, as warnings."""
        return [(step, "warning", note, self._created) for step, note in self._notes]

    def load_checkpoint(self, which: Any = "newest") -> None:
        """None: the weights are not kept."""

    def change_counter(self) -> int:
        """0: a capture does not change."""
        return 0


def _score_roles(capture: Capture) -> Arrays:
    return {ROLES_PREFIX + name: role.scores[0] for name, role in score_capture(capture).items()}
