"""What an analysis reads from run folders, and how runs become seeds of one experiment."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.tasks.block_means import block_mean
from neural.tasks.language_model import WINDOW_LOSSES
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.views.correlation import Curve
from neural.views.phases import MIN_RISE, MIN_SCORES, phases
from neural.views.watched import watched

LOSS, ERROR = "valid/loss", "valid/standard_error"
STRETCHES = 16
"""Of the held-out text, dealt out to two halves in turn."""


class Missing(LookupError):
    """The runs have not what is asked for; the message says what and where it comes from."""


def measure(run: Run, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values of a measure, [step, layer, head], [step, layer, layer] or [step, layer]."""
    try:
        steps, values = run.measure(name)
    except RunError:
        raise Missing(f"{run.name} has no measure `{name}`; see `tracking.measures`") from None
    return steps, values.astype(float)


def mean_curve(run: Run, name: str) -> Curve:
    """A measure averaged over everything that was measured at a step."""
    steps, values = measure(run, name)
    return Curve(steps, mean(values.reshape(len(steps), -1), axis=1), _halves(steps, *run.halves(name)))


def _halves(steps: np.ndarray, at: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Two measurements at the same steps; None where they are not known at all of them."""
    if not len(steps) or not np.isin(steps, at).all():
        return None
    rows = values[np.searchsorted(at, steps)].astype(float)
    return rows[:, 0], rows[:, 1]


def scalar_curve(run: Run, name: str, source: str) -> Curve:
    """A curve that was logged by a task; `source` says who logs it, for the message where nobody did."""
    try:
        return Curve(*run.scalars(name))
    except RunError:
        raise Missing(f"{run.name} has no `{name}`: {source}") from None


def loss_curve(run: Run) -> Curve:
    """The validation loss; where the loss of every window was kept, also on two halves of the text.

    Halves are alternate stretches: alternate windows would be alike, and make the loss look surer than it is.
    """
    curve = scalar_curve(run, LOSS, "it was never validated")
    try:
        at, losses = run.measure(WINDOW_LOSSES)
    except RunError:
        return curve
    if losses.shape[1] < STRETCHES:
        return curve
    stretches = np.array([part.mean(axis=1) for part in np.array_split(losses.astype(float), STRETCHES, axis=1)])
    halves = np.stack([stretches[0::2].mean(axis=0), stretches[1::2].mean(axis=0)], axis=1)
    return Curve(curve.steps, curve.values, _halves(curve.steps, at, halves))


class Score(NamedTuple):
    """The score that decides which checkpoint is best."""

    name: str
    larger: bool
    """Whether larger is better."""
    curve: Curve
    """Its finite values."""


def deciding(run: Run) -> Score:
    """The score that decided in this run; Missing where it was never validated."""
    name, larger = watched(str(run.settings.get("task", "")))
    curve = scalar_curve(run, name, "it was never validated")
    finite = np.isfinite(curve.values)
    return Score(name, larger, Curve(curve.steps[finite], curve.values[finite]))


def has_learned(run: Run) -> bool:
    """Whether its validations got better by more than their noise; runs without any are taken to have."""
    try:
        score = deciding(run)
    except Missing:
        return True
    rising = score.curve.values if score.larger else -score.curve.values
    error = standard_error(run)
    if 2 <= len(rising) < MIN_SCORES and not error:
        # too few scores to show their noise: what was lost on the way must be small beside what was gained
        lost, gained = -np.minimum(np.diff(rising), 0).sum(), rising.max() - rising[0]
        return bool(gained > max(3 * lost, MIN_RISE * abs(rising[0])))
    found = phases(rising.tolist(), standard_error=error)
    return any(phase.name == "best" and phase.first > 1 for phase in found)


def standard_error(run: Run) -> float:
    """Of the difference between two validations; 0 where it is unknown.

    Where the loss of every window was kept, of the differences window by window, which vary far less than the losses.
    """
    try:
        losses = run.measure(WINDOW_LOSSES)[1].astype(float)
    except RunError:
        losses = np.empty((0, 0))
    if len(losses) > 1:
        errors = [block_mean(change).standard_error for change in np.diff(losses, axis=0)]
        return float(np.nanmedian(errors)) if np.isfinite(errors).any() else 0.0
    return float(np.median(run.scalars(ERROR)[1])) * math.sqrt(2) if ERROR in run.names() else 0.0


def mean(values: np.ndarray, axis: int | tuple[int, ...] | None = None) -> np.ndarray:
    """Over what is finite; NaN where nothing is."""
    finite = np.isfinite(values)
    total, count = np.where(finite, values, 0).sum(axis=axis), finite.sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def one_per_seed(runs: Iterable[Run]) -> list[Run]:
    """Runs of the same settings and the same seed say the same thing twice: the last of them counts."""
    found: dict[str, Run] = {}
    for run in runs:
        seeded = seed_of(run) is not None
        found[_described(run.settings, seeded=True) if seeded else str(run.path)] = run
    return list(found.values())


def experiments(runs: Iterable[Run]) -> dict[str, dict[str, list[Run]]]:
    """Runs by data set and then by what else they have in common: those of a list differ by their seed alone."""
    found: dict[str, dict[str, dict[str, list[Run]]]] = {}
    for run in one_per_seed(runs):
        label = re.sub(r"[_ -]*seed-?\d+", "", str(run.settings.get("name") or run.settings.get("task") or "runs"))
        alike = found.setdefault(data_of(run), {}).setdefault(label or "runs", {})
        alike.setdefault(_described(run.settings, seeded=False), []).append(run)
    return {
        data: {
            label if number == 1 else f"{label} ({number})": group
            for label, alike in labels.items() for number, group in enumerate(alike.values(), 1)
        }
        for data, labels in found.items()
    }  # fmt: skip


def seed_of(run: Run) -> int | None:
    """As the settings say."""
    training = run.settings.get("training")
    return training.get("seed") if isinstance(training, dict) else None


def data_of(run: Run) -> str:
    """The data set's name, fit for a file's."""
    name = run.settings.get("data") or "data"
    stem = Path(name).stem if isinstance(name, str) else "data"
    return re.sub(r"\W+", "_", stem).strip("_") or "data"


def _described(settings: dict[str, Any], *, seeded: bool) -> str:
    kept = {key: value for key, value in settings.items() if key != "name"}
    if not seeded and isinstance(kept.get("training"), dict):
        kept["training"] = {key: value for key, value in kept["training"].items() if key != "seed"}
    return json.dumps(kept, sort_keys=True, default=str)


def halves(layers: int) -> tuple[Sequence[int], Sequence[int]]:
    """The lower layers and the higher ones; of an odd number, the one in the middle is a lower one."""
    border = layers - layers // 2
    return range(border), range(border, layers)
