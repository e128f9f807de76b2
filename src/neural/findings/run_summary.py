"""Summary of a run as plain data: state, best scores, curves, attention. Needs no torch.

A run is the folder of one training (`Run`): settings, status, rows (logged scalars and attention
measures, by step), metadata (facts by name, such as the number of parameters), checkpoints. The
monitored metric is the one that selects the best checkpoint. An attention measure is a statistic of
attention weights; a snapshot is its values at one step.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.capture.measure import PairMeasure
from neural.capture.measures import registry as measures
from neural.core.experiment import TrainingSettings
from neural.core.files import get_file_size
from neural.core.registry import UnknownNameError
from neural.core.settings import flatten_settings
from neural.findings.phases import find_phases
from neural.findings.record import Record
from neural.findings.run_loading import estimate_loss_change_error, get_monitored_metric
from neural.language.check import check
from neural.language.shapes import format_shape
from neural.optim.catalogue import CATALOGUE
from neural.optim.optimizer_factory import resolve_optimizer_values
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.tasks.task import Task

MAX_CURVE_POINTS = 500
"""Points of a curve in JSON output; longer curves are downsampled."""


class BestValidation(NamedTuple):
    """The validation with the best score."""

    step: int
    score: float
    """The monitored metric of the task."""
    name: str
    """Name of that metric."""
    scores: dict[str, float | None]
    """All scores of that validation; None for NaN."""


def find_best_validation(run: Record) -> BestValidation | None:
    """The best validation so far, the earlier of two equal ones; None without a finite score."""
    name, larger_is_better = get_monitored_metric(str(run.settings.get("task", "")))
    score_names = [scalar for scalar in run.scalar_names() if scalar.startswith("valid/")]
    if name not in score_names:
        return None
    steps, values = run.scalars(name)
    if not np.isfinite(values).any():
        return None
    minimized = -values if larger_is_better else values
    best_index = int(np.argmin(np.where(np.isfinite(values), minimized, np.inf)))
    best_step = steps[best_index]
    scores: dict[str, float | None] = {}
    for score_name in [name, *(other for other in score_names if other != name)]:
        score_steps, score_values = run.scalars(score_name)
        if best_step in score_steps:
            scores[score_name] = to_json_numbers(score_values[score_steps == best_step][0])
    return BestValidation(int(best_step), float(values[best_index]), name, scores)


def load_last_score(run: Run) -> float | None:
    """The monitored metric at the last validation; None where it is missing or NaN.

    Unlike the best score it has no selection bias.
    """
    name, _ = get_monitored_metric(str(run.settings.get("task", "")))
    if name not in run.scalar_names():
        return None
    value = float(run.scalars(name)[1][-1])
    return value if math.isfinite(value) else None


def get_current_step(run: Record) -> int:
    """The current step: the later one of the status file and of the last logged loss.

    The status file of a running training is written every few seconds only.
    """
    status = run.status
    has_ended = status.step and status.state not in ("running", "lost")
    if has_ended or "train/loss" not in run.scalar_names():
        return status.step
    return max([status.step, *run.scalars("train/loss")[0][-1:].tolist()])


def summarize_run(run: Record) -> dict[str, Any]:
    """State, progress and best validation of a run, as JSON data."""
    status, best = run.status, find_best_validation(run)
    return {
        "name": run.name,
        "path": str(run.path),
        "state": status.state,
        "step": get_current_step(run),
        "steps": run.metadata("steps"),
        "best": best._asdict() if best else None,
        "started": status.started,
        "time": status.time,
        "message": status.message,
    }


def describe_run(run: Run) -> dict[str, Any]:
    """All data that `neural show` prints."""
    return {
        **summarize_run(run),
        "settings": get_changed_settings(run),
        "network": describe_network(run),
        "curves": {
            name: dict(zip(("steps", "values"), downsample_curve(*run.scalars(name)), strict=True))
            for name in run.scalar_names()
        },
        "phases": summarize_phases(run),
        "attention": summarize_attention(run),
        "events": [
            {"step": step, "kind": kind, "text": text, "time": time}
            for step, kind, text, time in run.events()
        ],
        "checkpoints": list_checkpoints(run),
    }


def summarize_phases(run: Run) -> list[dict[str, Any]]:
    """Phases of the training (findings/phases.py), such as "rapid" or "plateau".

    They are phases of the monitored metric. Each has its name, first and last step, the epochs of
    both if known, and the change of the metric.
    """
    name, larger_is_better = get_monitored_metric(str(run.settings.get("task", "")))
    if name not in run.scalar_names():
        return []
    steps, values = run.scalars(name)
    finite = np.isfinite(values)
    steps, batches_per_epoch = steps[finite], run.metadata("batches_per_epoch")
    summaries = []
    for phase in find_phases(
        values[finite].tolist(),
        larger_is_better=larger_is_better,
        standard_error=estimate_loss_change_error(run),
    ):
        phase_steps = [int(steps[index - 1]) for index in (phase.first, phase.last)]
        epochs = (
            [round(step / batches_per_epoch, 2) for step in phase_steps]
            if batches_per_epoch
            else None
        )
        summaries.append(
            {
                "name": phase.name,
                "steps": phase_steps,
                "epochs": epochs,
                "score": name,
                "change": phase.change,
            }
        )
    return summaries


def get_changed_settings(run: Record) -> dict[str, Any]:
    """Settings that differ from their defaults, without name and network program.

    Values that the task filled in are left out where they are the usual ones, and where they only
    identify the data, such as its fingerprint. Keys are flat: `{"training.seed": 1}`.
    """
    task = _find_task(str(run.settings.get("task", "")))
    defaults: dict[str, Any] = {}
    has_program = isinstance(run, Run) and run.program is not None
    excluded = {"name", "network"} if has_program else {"name"}
    filled_defaults: Mapping[str, Any] = {}
    if task is not None:
        constructed = task.Settings.model_construct()
        defaults = flatten_settings(constructed.model_dump(mode="json", warnings=False))
        excluded |= task.Settings.data_keys
        filled_defaults = task.Settings.filled_defaults
    return {
        key: value
        for key, value in flatten_settings(run.settings).items()
        if key not in excluded
        and (key not in defaults or defaults[key] != value)
        and (key not in filled_defaults or filled_defaults[key] != value)
    }


def get_effective_settings(run: Run) -> dict[str, Any]:
    """Settings of a run; None is replaced by the default of the optimizer or by the data's value.

    Keys are flat: `{"training.seed": 1}`.
    """
    settings = flatten_settings(run.settings)
    training = run.settings.get("training")
    if not isinstance(training, dict):
        return settings
    known_settings = {
        key: value for key, value in training.items() if key in TrainingSettings.model_fields
    }
    try:
        resolved = resolve_optimizer_values(
            TrainingSettings.model_validate_json(json.dumps(known_settings))
        )
    except ValueError:  # settings of another version, or a user's own optimizer
        return settings
    resolved["steps"] = run.metadata("steps")
    filled = {f"training.{key}": value for key, value in resolved.items() if value is not None}
    return settings | {key: value for key, value in filled.items() if settings.get(key) is None}


def describe_network(run: Record) -> dict[str, Any]:
    """Name, shapes and parameter count of the network, as far as the run folder has them.

    `run.program` is the text of the `.neural` file that declares the network.
    """
    description: dict[str, Any] = {"parameters": run.metadata("parameters")}
    if not isinstance(run, Run) or run.program is None:
        return description
    result = check(run.program, CATALOGUE, network=run.network_name)
    if not result.errors:  # programs of other versions may have errors in this one
        network = result.networks[0]
        description |= {
            "name": network.name,
            "input_shape": format_shape(network.input, batch=True),
            "output_shape": format_shape(network.output, batch=True),
        }
    return description


def summarize_attention(run: Run) -> dict[str, Any] | None:
    """First and last values of every attention measure, [layer][head] or [layer].

    None without attention. Measures of pairs of layers are left out. The others are sorted by
    `moved`, the mean absolute change relative to the largest value, in descending order.
    """
    layers = run.metadata("attention/layers")
    if not layers:
        return None
    units = {
        name: description.get("unit", "")
        for name, description in (run.metadata("attention/measures") or {}).items()
    }
    summaries, first_step, last_step = {}, 0, 0
    for name in run.measure_names():
        steps, values = run.measure(name)
        if _is_pair_measure(name) or not len(steps) or values.shape[1] != len(layers):
            continue
        first, last = values[0], values[-1]
        first_step, last_step = int(steps[0]), int(steps[-1])
        finite = np.isfinite(first) & np.isfinite(last)
        scale = float(np.abs(np.stack([first, last]))[:, finite].max()) if finite.any() else 0.0
        moved = float(np.abs(last - first)[finite].mean()) / scale if scale else 0.0
        summaries[name] = {
            "unit": units.get(name, ""),
            "bounded": _is_bounded(name),
            "moved": moved,
            "first": to_json_numbers(first),
            "last": to_json_numbers(last),
        }
    ordered = sorted(summaries, key=lambda name: -summaries[name]["moved"])
    return {
        "layers": layers,
        "first_step": first_step,
        "last_step": last_step,
        "measures": {name: summaries[name] for name in ordered},
    }


def list_checkpoints(run: Run) -> list[dict[str, Any]]:
    """Checkpoints in the run folder, as JSON data.

    Every checkpoint that was the best when it was saved has `is_best`; the newest of them is best.
    """
    checkpoints = run.checkpoints()
    best_step = max(
        (checkpoint.step for checkpoint in checkpoints if checkpoint.is_best), default=None
    )
    return [
        {
            "step": checkpoint.step,
            "best": checkpoint.step == best_step,
            "bytes": size,
            "path": str(checkpoint.path),
        }
        for checkpoint in checkpoints
        # a running training may have deleted it since
        if (size := get_file_size(checkpoint.path)) is not None
    ]


def downsample_curve(
    steps: np.ndarray, values: np.ndarray, max_points: int = MAX_CURVE_POINTS
) -> tuple[list[int], list[float | None]]:
    """At most `max_points` points of a curve, evenly chosen, with the first and the last."""
    if len(steps) > max_points:
        kept_indices = np.linspace(0, len(steps) - 1, max_points).round().astype(int)
        steps, values = steps[kept_indices], values[kept_indices]
    return [int(step) for step in steps], to_json_numbers(values)


def to_json_numbers(array: np.ndarray) -> Any:
    """Nested lists; None for NaN and infinities, which JSON lacks."""
    if array.ndim:
        return [to_json_numbers(row) for row in array]
    return float(array) if np.isfinite(array) else None


def find_run_folders(root: Path) -> list[Path]:
    """All folders in `root` that are not hidden: runs, sweeps and others.

    Sorted by name; names of runs start with the date, so the oldest comes first.
    """
    with os.scandir(root) as entries:
        names = [
            entry.name
            for entry in entries
            # Path.is_dir, unlike DirEntry.is_dir, does not raise for a link to itself
            if entry.name[0] != "."
            and (entry.is_dir(follow_symlinks=False) or Path(entry.path).is_dir())
        ]
    return [root / name for name in sorted(names)]


def _find_task(name: str) -> type[Task] | None:
    try:
        return tasks.get(name)
    except UnknownNameError:
        return None


def _is_pair_measure(name: str) -> bool:
    try:
        return issubclass(measures.get(name), PairMeasure)
    except UnknownNameError:  # a measure of another version, or a user's own
        return False


def _is_bounded(name: str) -> bool:
    """Whether the values of a measure have a lower and an upper bound."""
    try:
        # the numbers of heads and keys do not matter: only whether the bounds are finite
        bounds = measures.get(name)().value_range(heads=2, keys=2)
        return bool(np.isfinite(bounds).all())
    except UnknownNameError:
        return False
