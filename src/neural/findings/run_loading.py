"""Curves and measures of runs for the analyses, and grouping of runs by experiment.

A run is the folder of one training; the runs of an experiment differ only by their seed. A curve
has values by training step. Some are also measured on two halves of the validation examples: the
difference of the halves shows the noise. Window losses are the validation losses of a language
model by window: the held-out text is cut into windows of the context length, [step, window].
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from neural.core.errors import NeuralError
from neural.core.registry import UnknownNameError
from neural.findings.phases import MIN_RELATIVE_RISE, MIN_SCORES_FOR_NOISE, find_phases
from neural.findings.record import WATCHED_TASK, Record
from neural.runs.errors import RunError
from neural.stats.blocks import estimate_mean_by_blocks
from neural.stats.correlation import Curve
from neural.tasks import registry as tasks
from neural.tasks.language_model.task import WINDOW_LOSSES
from neural.tasks.task import Task

LOSS_METRIC, STANDARD_ERROR_METRIC = "valid/loss", "valid/standard_error"
"""Validation loss, and its standard error over the examples of one validation."""
RecordT = TypeVar("RecordT", bound=Record)
TEXT_BLOCK_COUNT = 16
"""Blocks of windows into which `load_loss_curve` splits the held-out text."""


class MissingDataError(NeuralError, LookupError):
    """A run lacks data that an analysis needs; the message says which setting records it."""


def load_measure(run: Record, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values of an attention measure (capture/measures/).

    Values are [step, layer, head], [step, layer] for measures of a whole layer, or
    [step, layer, layer] for pairs of layers. NaN where a layer has fewer heads.
    """
    try:
        steps, values = run.measure(name)
    except RunError:
        raise MissingDataError(
            f"{run.name} has no measure `{name}`; see `tracking.measures`"
        ) from None
    return steps, values.astype(float)


def has_attention(run: Record) -> bool:
    """Whether attention was measured in the run: its network attends, and tracking was on."""
    return bool(run.metadata("attention/layers") or run.measure_names())


def is_capture(run: Record) -> bool:
    """Whether the run is the attention of finished models on one input, by `neural watch`."""
    return run.settings.get("task") == WATCHED_TASK


def is_single_capture(run: Record) -> bool:
    """Whether the run is one capture of attention without a training: its step says nothing."""
    return len(run.map_steps()) <= 1 and not run.scalar_names()


def count_attention_layers(run: Record) -> int:
    """Number of layers whose attention was measured; 0 where the run does not say."""
    return len(run.metadata("attention/layers") or ())


def load_mean_curve(run: Record, name: str) -> Curve:
    """A measure averaged over layers and heads at each step, also on two halves of the examples."""
    steps, values = load_measure(run, name)
    return Curve(
        steps,
        finite_mean(values.reshape(len(steps), -1), axis=1),
        _align_halves(steps, *run.half_means(name)),
    )


def _align_halves(
    steps: np.ndarray, measured_steps: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The values of both halves at `steps`; None if some of these steps lack them.

    `values` is [measured step, half].
    """
    if not len(steps) or not np.isin(steps, measured_steps).all():
        return None
    rows = values[np.searchsorted(measured_steps, steps)].astype(float)
    return rows[:, 0], rows[:, 1]


def load_scalar_curve(run: Record, name: str, reason: str) -> Curve:
    """A logged scalar by step; MissingDataError, with `reason` in its message, if it is missing."""
    try:
        return Curve(*run.scalars(name))
    except RunError:
        raise MissingDataError(f"{run.name} has no `{name}`: {reason}") from None


def load_loss_curve(run: Record) -> Curve:
    """The validation loss; also on two halves of the held-out text, if window losses were recorded.

    The halves consist of alternate blocks of windows. Alternate windows would be too similar, as
    neighbours in the text, and overestimate how well the halves agree.
    """
    curve = load_scalar_curve(run, LOSS_METRIC, "it was never validated")
    try:
        steps, losses = run.measure(WINDOW_LOSSES)
    except RunError:
        return curve
    if losses.shape[1] < TEXT_BLOCK_COUNT:
        return curve
    blocks = np.array_split(losses.astype(float), TEXT_BLOCK_COUNT, axis=1)
    block_losses = np.array([block.mean(axis=1) for block in blocks])
    halves = np.stack([block_losses[0::2].mean(axis=0), block_losses[1::2].mean(axis=0)], axis=1)
    return Curve(curve.steps, curve.values, _align_halves(curve.steps, steps, halves))


class MonitoredScore(NamedTuple):
    """The metric that selects the best checkpoint, with its curve."""

    name: str
    larger_is_better: bool
    curve: Curve
    """Finite values only."""


def load_monitored_score(run: Record) -> MonitoredScore:
    """The monitored metric of a run; MissingDataError without a validation."""
    name, larger_is_better = get_monitored_metric(str(run.settings.get("task", "")))
    curve = load_scalar_curve(run, name, "it was never validated")
    finite = np.isfinite(curve.values)
    return MonitoredScore(name, larger_is_better, Curve(curve.steps[finite], curve.values[finite]))


def has_learned(run: Record) -> bool:
    """Whether validation scores improved beyond their noise; True without validations."""
    try:
        score = load_monitored_score(run)
    except MissingDataError:
        return True
    rising = score.curve.values if score.larger_is_better else -score.curve.values
    error = estimate_loss_change_error(run)
    if 2 <= len(rising) < MIN_SCORES_FOR_NOISE and not error:
        # too few scores to estimate noise: the gain must be three times the sum of all falls
        falls, gain = -np.minimum(np.diff(rising), 0).sum(), rising.max() - rising[0]
        return bool(gain > max(3 * falls, MIN_RELATIVE_RISE * abs(rising[0])))
    phases = find_phases(rising.tolist(), standard_error=error)
    return any(phase.name == "best" and phase.first > 1 for phase in phases)


def estimate_loss_change_error(run: Record) -> float:
    """Standard error of the difference between the losses of two validations; 0 if unknown.

    With window losses it is the standard error of the change of a window's loss between two
    validations: these changes vary far less than the losses themselves.
    """
    try:
        losses = run.measure(WINDOW_LOSSES)[1].astype(float)
    except RunError:
        losses = np.empty((0, 0))
    if len(losses) > 1:
        # short blocks: an error that is too small is better than none where it raises a threshold
        errors = [
            estimate_mean_by_blocks(change, min_length=2).standard_error
            for change in np.diff(losses, axis=0)
        ]
        return float(np.nanmedian(errors)) if np.isfinite(errors).any() else 0.0
    # √2: the difference has the errors of two validations
    return (
        float(np.median(run.scalars(STANDARD_ERROR_METRIC)[1])) * math.sqrt(2)
        if STANDARD_ERROR_METRIC in run.scalar_names()
        else 0.0
    )


def finite_mean(values: np.ndarray, axis: int | tuple[int, ...] | None = None) -> np.ndarray:
    """Mean of the finite values; NaN where there are none."""
    finite = np.isfinite(values)
    total, count = np.where(finite, values, 0).sum(axis=axis), finite.sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def select_one_per_seed(runs: Iterable[RecordT]) -> list[RecordT]:
    """Of runs with equal settings and equal seed, keep the last: they are repetitions."""
    selected: dict[str, RecordT] = {}
    for run in runs:
        has_seed = get_seed(run) is not None
        key = _settings_key(run.settings, with_seed=True) if has_seed else str(run.path or id(run))
        selected[key] = run
    return list(selected.values())


def group_experiments(
    runs: Iterable[RecordT], *, join_folds: bool = False
) -> dict[str, dict[str, list[RecordT]]]:
    """Runs by data set, then by label; the runs of a list differ only by their seed.

    With `join_folds` they may also be different folds of one cross-validation. The label is the
    name of the experiment without its seed. A second group with the same name but other settings
    has the label "name (2)".
    """
    repetition = r"[_ -]*(?:seed-?\d+|fold-\d+-\d+)" if join_folds else r"[_ -]*seed-?\d+"
    groups: dict[str, dict[str, dict[str, list[RecordT]]]] = {}
    for run in select_one_per_seed(runs):
        label = re.sub(
            repetition,
            "",
            str(run.settings.get("name") or run.settings.get("task") or "runs"),
        )
        by_settings = groups.setdefault(get_dataset_name(run), {}).setdefault(label or "runs", {})
        key = _settings_key(run.settings, with_seed=False, with_fold=not join_folds)
        by_settings.setdefault(key, []).append(run)
    return {
        data: {
            label if number == 1 else f"{label} ({number})": group
            for label, by_settings in labels.items()
            for number, group in enumerate(by_settings.values(), 1)
        }
        for data, labels in groups.items()
    }


def get_seed(run: Record) -> int | None:
    """The seed in the settings, or None."""
    training = run.settings.get("training")
    return training.get("seed") if isinstance(training, dict) else None


def get_dataset_name(run: Record) -> str:
    """The name of the data set, usable as a file name."""
    name = run.settings.get("data") or "data"
    stem = Path(name).stem if isinstance(name, str) else "data"
    return re.sub(r"\W+", "_", stem).strip("_") or "data"


def _settings_key(settings: dict[str, Any], *, with_seed: bool, with_fold: bool = True) -> str:
    """A key that is equal for runs with equal settings.

    The name is not compared; the seed is compared if `with_seed`. Without `with_fold`, of a fold
    (`2/5`) only the number of folds is compared.
    """
    compared = {key: value for key, value in settings.items() if key != "name"}
    if not with_fold and isinstance(compared.get("fold"), str):
        compared["fold"] = compared["fold"].partition("/")[2]
    training = compared.get("training")
    if not with_seed and isinstance(training, dict):
        compared["training"] = {key: value for key, value in training.items() if key != "seed"}
    return json.dumps(compared, sort_keys=True, default=str)


def split_layer_halves(layer_count: int) -> tuple[Sequence[int], Sequence[int]]:
    """Indices of the lower and the higher half of the layers; a middle layer is a lower one."""
    middle = layer_count - layer_count // 2
    return range(middle), range(middle, layer_count)


@cache
def get_monitored_metric(task: str) -> tuple[str, bool]:
    """Name of the metric that selects the best checkpoint of a task, and whether larger is better.

    Defaults for unknown tasks.
    """
    try:
        task_type = tasks.get(task)
    except UnknownNameError:  # a task of another version, or a user's own
        task_type = Task
    return task_type.monitor, task_type.larger_is_better
