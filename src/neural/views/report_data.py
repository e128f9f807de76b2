"""A run folder as the pages of web/ draw it: plain data. docs/report.md tells the form.

Measures are 32-bit floats in base64, since JSON has no NaN and writes a float in eighteen letters. The maps of a step
are one piece of bytes: "NSTP", a version (1), how many layers (32 bits); then for each layer the length of its name
(16 bits), the name, the length of its map (32 bits) and the map as tracking/quantised.py packs it. Numbers have their
least significant byte first.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from neural.core.registry import UnknownName
from neural.tasks.cutting.calibration_choice import Choice
from neural.tasks.cutting.calibration_file import Calibrated
from neural.tasks.task import TaskError
from neural.tracking.measure import PairMeasure
from neural.tracking.measures import registry
from neural.tracking.quantised import HEADER
from neural.tracking.run import Run
from neural.views.judge import meanings

Axes = Literal["head", "layer", "pair"]
MAGIC, VERSION = b"NSTP", 1


def recorded(run: Run, *, after: int = -1) -> dict[str, Any]:
    """Attention, texts, calibration and events of a run; rows only of steps past `after`. Everything but the maps."""
    calibration, broken = calibration_data(run)
    return {
        "measures": measures(run, after=after), "layers": run.described("attention/layers") or [],
        "heads": run.described("attention/heads") or [], "labels": labels(run),
        "map_steps": [step for step in run.map_steps() if step > after], "pooled": {},
        "events": [{"step": step, "kind": kind, "text": text, "time": time}
                   for step, kind, text, time in run.events() if step > after],
        "samples": [{"step": int(step), "text": text}
                    for step, text in sorted((run.described("generation/texts") or {}).items(), key=_by_step)],
        "real": {name: _plain(value) for name, value in (run.described("generation/real") or {}).items()},
        "scores": meanings() if run.described("generation/texts") else {},
        "calibration": calibration, "remarks": broken,
    }  # fmt: skip


def measures(run: Run, *, after: int = -1) -> dict[str, dict[str, Any]]:
    """Every measure with what it means."""
    about, found = run.described("attention/measures") or {}, {}
    for name in run.measures():
        steps, values = run.measure(name, after=after)
        if len(steps) and values.ndim in (2, 3):
            told = about.get(name, {})
            found[name] = measure_data(steps, values, unit=told.get("unit", ""), says=told.get("says", ""),
                                       axes=axes(name, values.ndim))  # fmt: skip
    return found


def measure_data(
    steps: Sequence[int] | np.ndarray, values: np.ndarray, *, unit: str = "", says: str = "", axes: Axes = "head"
) -> dict[str, Any]:
    """One measure: [step, layer, head], [step, layer] or, of pairs, [step, layer, layer]."""
    data = base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()
    return {"unit": unit, "says": says, "axes": axes, "steps": [int(one) for one in steps],
            "shape": list(values.shape), "data": data}  # fmt: skip


def axes(name: str, dimensions: int) -> Axes:
    """What the numbers of a measure are of, its steps counted as a dimension."""
    if dimensions == 2:
        return "layer"
    try:
        return "pair" if issubclass(registry.get(name), PairMeasure) else "head"
    except UnknownName:   # of another version, or of somebody's own
        return "pair" if name.endswith("_between") else "head"


def step_maps(run: Run, step: int) -> bytes:
    """All maps of a step, for the browser."""
    layers = run.described("attention/layers") or []
    found = run.maps(step)
    order = {name: at for at, name in enumerate(layers)}
    return packed_step({name: found[name] for name in sorted(found, key=lambda name: order.get(name, len(order)))})


def packed_step(maps: Mapping[str, bytes]) -> bytes:
    """Maps by layer, in the order in which they are drawn, as one piece."""
    parts = [struct.pack("<4sBI", MAGIC, VERSION, len(maps))]
    for name, body in maps.items():
        told = name.encode()
        parts += [struct.pack("<H", len(told)), told, struct.pack("<I", len(body)), body]
    return b"".join(parts)


def heads_in(packed: bytes) -> int:
    """Of a packed map."""
    return HEADER.unpack_from(packed)[2]


def labels(run: Run) -> dict[str, list[str]] | None:
    """What stands beside the rows and columns of the maps, which are of the first example."""
    told = run.described("probe/labels")
    if not told:
        return None
    return {"queries": list(map(str, told[0])), "keys": list(map(str, told[0]))}


def calibration_data(run: Run) -> tuple[dict[str, Any] | None, list[str]]:
    """The reliability diagrams and scores of the run's calibration, by question; and what is wrong with it."""
    try:
        found = Calibrated.load(run.path)
    except TaskError as problem:
        return None, [str(problem)]
    if found is None:
        return None, []
    asked = {"boundary": found.boundary} | ({"label": found.label} if found.label else {})
    return {"data": found.data, "threshold": found.threshold, "f1": found.f1,
            "questions": {name: _choice(one) for name, one in asked.items()}}, []  # fmt: skip


def _choice(one: Choice) -> dict[str, Any]:
    return {
        "chosen": one.calibration.name(), "why": one.why,
        "diagrams": {name: diagram.to_dict() for name, diagram in one.diagrams.items()},
        "methods": {name: scores.to_dict() for name, scores in one.methods.items()},
    }  # fmt: skip


def _by_step(item: tuple[str, str]) -> int:
    return int(item[0])


def _plain(value: float | None) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None
