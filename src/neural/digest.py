"""What a run comes to, as plain data: how far it is, its best scores, its curves, its attention. Needs no torch."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.core.registry import UnknownName
from neural.tasks import registry as tasks
from neural.tasks.experiment import Training
from neural.tasks.task import Task
from neural.tracking.measure import PairMeasure
from neural.tracking.measures import registry as measures
from neural.tracking.run import Run
from neural.tracking.sink import flat
from neural.training.rates import values_used
from neural.views.phases import phases
from neural.views.reading import standard_error
from neural.views.watched import watched

POINTS = 500
"""Of a curve, at most, in what is printed as JSON."""


class Best(NamedTuple):
    """The validation that scored best."""

    step: int
    score: float
    """The one that decides: `watched` of the task."""
    name: str
    scores: dict[str, float | None]
    """All of that validation; None is no number."""


def best(run: Run) -> Best | None:
    """The best validation so far, the earlier of two alike; None where there is none with a number."""
    name, larger = watched(str(run.settings.get("task", "")))
    scored = [one for one in run.names() if one.startswith("valid/")]
    if name not in scored:
        return None
    steps, values = run.scalars(name)
    if not np.isfinite(values).any():
        return None
    at = int(np.argmin(np.where(np.isfinite(values), -values if larger else values, np.inf)))
    scores: dict[str, float | None] = {}
    for one in [name, *(other for other in scored if other != name)]:
        there, value = run.scalars(one)
        if steps[at] in there:
            scores[one] = numbers(value[there == steps[at]][0])
    return Best(int(steps[at]), float(values[at]), name, scores)


def last_score(run: Run) -> float | None:
    """The score that decides, at the last validation; None where there is none, or it is NaN.

    Nothing was selected by it, as the best validation is by its own score.
    """
    name, _ = watched(str(run.settings.get("task", "")))
    if name not in run.names():
        return None
    value = float(run.scalars(name)[1][-1])
    return value if math.isfinite(value) else None


def step(run: Run) -> int:
    """How far it is; a status is written every few seconds, so where nobody has ended the run, its rows know more."""
    status = run.status
    ended = status.step and status.state not in ("running", "lost")
    if ended or "train/loss" not in run.names():
        return status.step
    return max([status.step, *run.scalars("train/loss")[0][-1:].tolist()])


def brief(run: Run) -> dict[str, Any]:
    """A run in one line."""
    status, found = run.status, best(run)
    return {
        "name": run.name, "path": str(run.path), "state": status.state, "step": step(run),
        "steps": run.described("steps"), "best": found._asdict() if found else None, "started": status.started,
        "time": status.time, "message": status.message,
    }  # fmt: skip


def whole(run: Run) -> dict[str, Any]:
    """A run with everything that `neural show` prints."""
    return {
        **brief(run), "settings": changed(run), "network": network(run),
        "curves": {name: dict(zip(("steps", "values"), thinned(*run.scalars(name)), strict=True))
                   for name in run.names()},
        "phases": phases_of(run), "attention": attention(run),
        "events": [{"step": step, "kind": kind, "text": text, "time": when} for step, kind, text, when in run.events()],
        "checkpoints": checkpoints(run),
    }  # fmt: skip


def phases_of(run: Run) -> list[dict[str, Any]]:
    """The phases of the training by the score that decides: name, steps, epochs where they are known, change."""
    name, larger = watched(str(run.settings.get("task", "")))
    if name not in run.names():
        return []
    steps, values = run.scalars(name)
    finite = np.isfinite(values)
    steps, epoch = steps[finite], run.described("epoch")
    found = []
    for one in phases(values[finite].tolist(), larger_is_better=larger, standard_error=standard_error(run)):
        at = [int(steps[place - 1]) for place in (one.first, one.last)]
        epochs = [round(step / epoch, 2) for step in at] if epoch else None
        found.append({"name": one.name, "steps": at, "epochs": epochs, "score": name, "change": one.change})
    return found


def changed(run: Run) -> dict[str, Any]:
    """The settings that are not as they are by default, flat; without name and program, told elsewhere."""
    kind = _task(str(run.settings.get("task", "")))
    usual = flat(kind.Settings.model_construct().model_dump(mode="json", warnings=False)) if kind else {}
    unlike = {key: value for key, value in flat(run.settings).items() if key not in usual or usual[key] != value}
    told = {"name", "network"} if run.program is not None else {"name"}
    return {key: value for key, value in unlike.items() if key not in told}


def settings_used(run: Run) -> dict[str, Any]:
    """The settings of a run, flat, with the numbers that they leave to optimizer and epochs."""
    settings = flat(run.settings)
    training = run.settings.get("training")
    if not isinstance(training, dict):
        return settings
    known = {key: value for key, value in training.items() if key in Training.model_fields}
    try:
        used = values_used(Training.model_validate_json(json.dumps(known)))
    except ValueError:   # of another version, or an optimizer of somebody's own
        return settings
    used["steps"] = run.described("steps")
    filled = {f"training.{key}": value for key, value in used.items() if value is not None}
    return settings | {key: value for key, value in filled.items() if settings.get(key) is None}


def network(run: Run) -> dict[str, Any]:
    """What was trained: its name, shapes and size, as far as the folder says."""
    from neural.blueprint import ProgramError, parse  # the language, which only this needs
    from neural.language.shapes import show

    found: dict[str, Any] = {"parameters": run.described("parameters")}
    if run.program is not None:
        try:
            read = parse(run.program, network=run.network_name).network
        except ProgramError:   # this version does not know the program any more; the rest is as it was
            return found
        found |= {"name": read.name, "takes": show(read.input, batch=True),
                  "gives": show(read.output, batch=True)}  # fmt: skip
    return found


def attention(run: Run) -> dict[str, Any] | None:
    """The first and the last look by measure, [layer][head] or [layer]; the liveliest measure first."""
    layers = run.described("attention/layers")
    if not layers:
        return None
    units = {name: about.get("unit", "") for name, about in (run.described("attention/measures") or {}).items()}
    found, steps = {}, (0, 0)
    for name in run.measures():
        at, values = run.measure(name)
        if _of_pairs(name) or not len(at) or values.shape[1] != len(layers):
            continue
        first, last = values[0], values[-1]
        steps = int(at[0]), int(at[-1])
        known = np.isfinite(first) & np.isfinite(last)
        reach = float(np.abs(np.stack([first, last]))[:, known].max()) if known.any() else 0.0
        moved = float(np.abs(last - first)[known].mean()) / reach if reach else 0.0
        found[name] = {"unit": units.get(name, ""), "bounded": _bounded(name), "moved": moved,
                       "first": numbers(first), "last": numbers(last)}  # fmt: skip
    ordered = sorted(found, key=lambda name: -found[name]["moved"])
    return {"layers": layers, "first_step": steps[0], "last_step": steps[1],
            "measures": {name: found[name] for name in ordered}}  # fmt: skip


def checkpoints(run: Run) -> list[dict[str, Any]]:
    """Those in the folder; the last one that was the best when it was saved is the best."""
    saved = run.checkpoints()
    top = max((one.step for one in saved if one.best), default=None)
    return [
        {"step": one.step, "best": one.step == top, "bytes": one.path.stat().st_size, "path": str(one.path)}
        for one in saved if one.path.exists()   # training may be pruning while we read
    ]  # fmt: skip


def thinned(steps: np.ndarray, values: np.ndarray, most: int = POINTS) -> tuple[list[int], list[float | None]]:
    """At most so many points of a curve, evenly chosen, with the first and the last."""
    if len(steps) > most:
        keep = np.linspace(0, len(steps) - 1, most).round().astype(int)
        steps, values = steps[keep], values[keep]
    return [int(one) for one in steps], numbers(values)


def numbers(array: np.ndarray) -> Any:
    """Nested lists; None where there is no number, which JSON cannot say."""
    if array.ndim:
        return [numbers(one) for one in array]
    return float(array) if np.isfinite(array) else None


def runs_in(root: Path) -> list[Path]:
    """Everything in a folder of runs, oldest first: runs, sweeps, and what is neither."""
    return sorted(one for one in root.iterdir() if one.is_dir() and not one.name.startswith("."))


def _task(name: str) -> type[Task] | None:
    try:
        return tasks.get(name)
    except UnknownName:
        return None


def _of_pairs(name: str) -> bool:
    try:
        return issubclass(measures.get(name), PairMeasure)
    except UnknownName:   # of another version, or of somebody's own
        return False


def _bounded(name: str) -> bool:
    """Whether its scale has two ends."""
    try:
        return bool(np.isfinite(measures.get(name)().bounds(2, 2)).all())
    except UnknownName:
        return False
