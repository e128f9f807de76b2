"""A run folder as plain data for the pages of web/; docs/report.md documents the format.

A measure is a statistic of attention weights by layer and head; a map is the attention weights of a
layer. Maps are of the probe: fixed validation examples whose attention is captured in training.

Measures are 32-bit floats in base64, since JSON has no NaN and needs up to 18 characters per float.
The maps of a step are one binary block: "NSTP", the version (1 byte), the number of layers (32
bits); then for each layer the length of its name (16 bits), the name, the length of its map (32
bits) and the map as capture/map_encoding.py encodes it. Integers are little-endian.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple

import numpy as np

from neural.analysis.sample_quality import REAL_TEXT_KEY, SAMPLES_KEY, describe_measures
from neural.capture.map_encoding import MAP_HEADER, add_map_location, decode_map, encode_map
from neural.capture.measure import PairMeasure
from neural.capture.measures import registry
from neural.core.errors import TaskError
from neural.core.registry import UnknownNameError
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.tasks.segmentation.calibration_selection import CalibrationChoice, RunCalibration

MeasureAxes = Literal["head", "layer", "pair"]
"""A value for each layer and head, for each layer, or for each pair of layers."""
MAPS_MAGIC, MAPS_VERSION = b"NSTP", 1
MAX_MAP_BYTES = 3_200_000
"""For all maps of a page, before base64, which adds a third."""
MAX_MAP_STEPS = 200
"""Steps with maps in a page."""
SKIP_SIZE_RATIO = 1.5
"""A compression setting is not tried if the size of the middle step × number of steps exceeds the
limit this many times."""
MIN_STEP_BYTES = 1000
"""Smaller steps are not compressed further."""
QUANTIZATION_LEVELS = (127, 63)
"""Numbers of weight levels above 0, tried in this order; downsampled maps use the last one."""


def collect_recorded_data(run: Run, *, after: int = -1) -> dict[str, Any]:
    """Attention measures, samples, calibration, events and sections of a run, without its maps.

    Measures, map steps and events are of steps greater than `after`.
    """
    calibration, errors = load_calibration_data(run)
    return {
        "measures": collect_measures(run, after=after),
        "layers": run.metadata("attention/layers") or [],
        "heads": run.metadata("attention/heads") or [],
        "labels": load_map_labels(run),
        "map_steps": [step for step in run.map_steps() if step > after],
        "downsampling": {},
        "events": [
            {"step": step, "kind": kind, "text": text, "time": time}
            for step, kind, text, time in run.events()
            if step > after
        ],
        "samples": [
            {"step": int(step), "text": text}
            for step, text in sorted((run.metadata(SAMPLES_KEY) or {}).items(), key=_step_key)
        ],
        "real_text": {
            name: _finite_or_none(value)
            for name, value in (run.metadata(REAL_TEXT_KEY) or {}).items()
        },
        "scores": describe_measures() if run.metadata(SAMPLES_KEY) else {},
        "calibration": calibration,
        "sections": load_sections(run),
        "notes": errors,
    }


def load_sections(run: Run) -> list[dict[str, Any]]:
    """The page sections that the run's task adds, such as plots of its own."""
    try:
        task = tasks.get(str(run.settings.get("task", "")))
    except UnknownNameError:  # of another version, or a user's own
        return []
    return [section.to_dict() for section in task.page_sections(run)]


def collect_measures(run: Run, *, after: int = -1) -> dict[str, dict[str, Any]]:
    """All measures with unit and description."""
    descriptions, measures = run.metadata("attention/measures") or {}, {}
    for name in run.measure_names():
        steps, values = run.measure(name, after=after)
        if len(steps) and values.ndim in (2, 3):
            description = descriptions.get(name, {})
            measures[name] = encode_measure(
                steps,
                values,
                unit=description.get("unit", ""),
                description=description.get("description", ""),
                axes=get_measure_axes(name, values.ndim),
            )
    return measures


def encode_measure(
    steps: Sequence[int] | np.ndarray,
    values: np.ndarray,
    *,
    unit: str = "",
    description: str = "",
    axes: MeasureAxes = "head",
) -> dict[str, Any]:
    """One measure: [step, layer, head], [step, layer] or, for pairs, [step, layer, layer]."""
    data = base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()
    return {
        "unit": unit,
        "description": description,
        "axes": axes,
        "steps": [int(step) for step in steps],
        "shape": list(values.shape),
        "data": data,
    }


def get_measure_axes(name: str, dimensions: int) -> MeasureAxes:
    """The axes of a measure beside its steps; `dimensions` is the array's ndim, steps included."""
    if dimensions == 2:
        return "layer"
    try:
        return "pair" if issubclass(registry.get(name), PairMeasure) else "head"
    except UnknownNameError:  # of another version, or a user's own
        return "pair" if name.endswith("_between") else "head"


def load_step_maps(run: Run, step: int) -> bytes:
    """All maps of a step in the order of the layers, packed for the browser."""
    layers = run.metadata("attention/layers") or []
    maps = run.maps(step)
    order = {name: index for index, name in enumerate(layers)}
    return pack_step_maps(
        {name: maps[name] for name in sorted(maps, key=lambda name: order.get(name, len(order)))}
    )


def pack_step_maps(maps: Mapping[str, bytes]) -> bytes:
    """Pack encoded maps by layer, in the order in which they are drawn, into one block."""
    chunks = [struct.pack("<4sBI", MAPS_MAGIC, MAPS_VERSION, len(maps))]
    for name, encoded_map in maps.items():
        encoded_name = name.encode()
        chunks += [struct.pack("<H", len(encoded_name)), encoded_name]
        chunks += [struct.pack("<I", len(encoded_map)), encoded_map]
    return b"".join(chunks)


def read_head_count(encoded_map: bytes) -> int:
    """The number of heads of an encoded map."""
    return MAP_HEADER.unpack_from(encoded_map)[2]


def load_map_labels(run: Run) -> dict[str, list[str]] | None:
    """Labels of the rows and columns of the maps, which are of the first probe example."""
    labels = run.metadata("probe/labels")
    if not labels:
        return None
    return {"queries": list(map(str, labels[0])), "keys": list(map(str, labels[0]))}


def load_calibration_data(run: Run) -> tuple[dict[str, Any] | None, list[str]]:
    """Reliability diagrams and scores of the run's calibration, and error messages.

    By question: "boundary" (is there one?) and "label" (which class has the segment?).
    """
    try:
        calibration = RunCalibration.load(run.path)
    except TaskError as error:
        return None, [str(error)]
    if calibration is None:
        return None, []
    choices = {"boundary": calibration.boundary}
    if calibration.label:
        choices["label"] = calibration.label
    return {
        "data": calibration.data,
        "threshold": calibration.threshold,
        "f1": calibration.f1,
        "questions": {name: _encode_calibration_choice(choice) for name, choice in choices.items()},
    }, []


def _encode_calibration_choice(choice: CalibrationChoice) -> dict[str, Any]:
    return {
        "chosen": choice.calibrator.name(),
        "why": choice.reason,
        "diagrams": {name: diagram.to_dict() for name, diagram in choice.diagrams.items()},
        "methods": {name: scores.to_dict() for name, scores in choice.methods.items()},
    }


def _step_key(item: tuple[str, str]) -> int:
    return int(item[0])


def _finite_or_none(value: float | None) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None


class CompressedMaps(NamedTuple):
    """Maps of a run, reduced to a size limit."""

    steps: dict[int, bytes]
    """By step, as `pack_step_maps` packs them."""
    downsampling: dict[int, int]
    """Step → downsampling factor; only steps with a factor above 1."""
    notes: list[str]
    """Sentences about what was left out."""


def compress_maps(run: Run, max_bytes: int = MAX_MAP_BYTES) -> CompressedMaps:
    """The maps of a run in about `max_bytes` or less.

    Steps are thinned out first. Then weights are rounded, then cells are merged, by the smallest
    amount that fits. The last step stays exact if it takes no more than a third of the bytes.
    """
    all_steps = run.map_steps()
    steps = all_steps
    notes = []
    if len(all_steps) > MAX_MAP_STEPS:
        indices = np.linspace(0, len(all_steps) - 1, MAX_MAP_STEPS).astype(int)
        steps = [all_steps[index] for index in indices]
        notes.append(f"maps of {len(steps)} of {len(all_steps)} steps, evenly chosen")
    exact = {step: load_step_maps(run, step) for step in steps}
    if _total_bytes(exact) <= max_bytes:
        return CompressedMaps(exact, {}, notes)
    last = steps[-1]
    exact_last = {last: exact.pop(last)} if len(exact[last]) <= max_bytes / 3 else {}
    factor, levels, reduced = 1, 0, exact  # set by the loop below
    remaining_bytes = max_bytes - _total_bytes(exact_last)
    for factor, levels in _compression_settings():
        sample_bytes = len(_downsample_step(run, steps[len(steps) // 2], factor, levels))
        predicted_bytes = sample_bytes * len(exact)
        if predicted_bytes > SKIP_SIZE_RATIO * remaining_bytes and sample_bytes >= MIN_STEP_BYTES:
            continue
        reduced = {step: _downsample_step(run, step, factor, levels) for step in exact}
        if _total_bytes(reduced) <= remaining_bytes or all(
            len(packed) < MIN_STEP_BYTES for packed in reduced.values()
        ):
            break
    reduction = (
        f"a cell of a map stands for {factor} × {factor} positions"
        if factor > 1
        else f"weights are off by up to {1 / levels:.3f}"
    )
    exception = f", except in the last step ({last:,})" if exact_last else ""
    notes.append(f"to keep this file small, {reduction}{exception}; the run folder has all weights")
    return CompressedMaps(
        {**reduced, **exact_last}, dict.fromkeys(reduced, factor) if factor > 1 else {}, notes
    )


def downsample_map(encoded_map: bytes, factor: int, levels: int) -> bytes:
    """Merge `factor` × `factor` weights into a cell and round to `levels` levels above 0.

    A cell is the sum over its keys and the mean over its queries, so rows still sum to 1.
    """
    _, _, _, queries, keys, causal, query_offset = MAP_HEADER.unpack_from(encoded_map)
    weights = decode_map(encoded_map)
    if factor > 1:
        rows, columns = np.arange(0, queries, factor), np.arange(0, keys, factor)
        sums = np.add.reduceat(np.add.reduceat(weights, columns, axis=2), rows, axis=1)
        weights = sums / np.diff([*rows, queries])[:, None]
    rounded = np.square(np.rint(np.sqrt(weights) * levels) / levels)
    return encode_map(rounded, causal=bool(causal), query_offset=-(-query_offset // factor))


def _compression_settings() -> Iterator[tuple[int, int]]:
    """(downsampling factor, weight levels) in the order of decreasing size of the maps."""
    yield from ((1, levels) for levels in QUANTIZATION_LEVELS)
    yield from ((factor, QUANTIZATION_LEVELS[-1]) for factor in count(2))


def _downsample_step(run: Run, step: int, factor: int, levels: int) -> bytes:
    maps = run.maps(step)
    # the layers of the first probe example; further examples stay in the run folder
    layers = [name for name in run.metadata("attention/layers") or [] if name in maps]
    with add_map_location(run.path, step):
        return pack_step_maps({name: downsample_map(maps[name], factor, levels) for name in layers})


def _total_bytes(steps: dict[int, bytes]) -> int:
    return sum(map(len, steps.values()))
