"""A run folder as plain data for the pages of web/; docs/report.md documents the format.

A measure is a statistic of attention weights by layer and head. A map is the attention weights of a
layer, [head, query, key]. Both are of the probe: a few fixed validation examples whose attention is
captured during training. The metadata of a run are facts by name, such as the names of its layers.

Measures are encoded as 32-bit floats in base64, since JSON has no NaN and needs up to 18 characters
per float. The maps of a step are encoded as one binary block: "NSTP", the version (1 byte), the
number of layers (32 bits); then for each layer the length of its name (16 bits), the name, the
length of its map (32 bits) and the map as capture/map_encoding.py encodes it. Integers are
little-endian.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from neural.capture.map_encoding import (
    MAP_HEADER,
    add_map_location,
    decode_map,
    encode_map,
    is_signed_map,
)
from neural.capture.measure import PairMeasure
from neural.capture.measures import registry
from neural.capture.vector_encoding import VECTORS_KEY, check_vectors
from neural.core.errors import TaskError
from neural.core.registry import UnknownNameError
from neural.findings.record import Record
from neural.findings.run_loading import get_monitored_metric
from neural.findings.sample_quality import REAL_TEXT_KEY, SAMPLES_KEY, describe_measures
from neural.report.image_attention import load_image_page_data
from neural.report.segmentation_data import load_segmentation_data
from neural.runs.errors import RunError
from neural.runs.evaluation_file import load_evaluation_sections, load_evaluation_summary
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.tasks.focus.recorded_examples import FOCUS_ARRAY
from neural.tasks.segmentation.calibration_selection import CalibrationChoice, RunCalibration

MeasureAxes = Literal["head", "layer", "pair"]
"""A value for each layer and head, for each layer, or for each pair of layers."""
MAPS_MAGIC, MAPS_VERSION = b"NSTP", 1
"""First bytes of a block of maps, and the version of its format."""
MAX_MAP_BYTES = 3_200_000
"""Size of all maps of a page, before base64, which adds a third."""
MAX_MAP_STEPS = 200
"""Steps with maps in a page; of more steps, some are left out."""
SKIP_SIZE_RATIO = 1.5
"""A compression setting is skipped if its predicted size exceeds the limit this many times.

The prediction is the size of the maps of the middle step times the number of steps.
"""
NO_VECTORS: dict[str, Any] = {"vectors": None, "vector_step": None}
"""Page data of a run without queries and keys."""
NO_RESULTS: dict[str, Any] = {
    "calibration": None,
    "segmentation": None,
    "evaluation": None,
    "sections": [],
    "notes": [],
}
"""Page data of captures in memory, which have no folder."""
MIN_STEP_BYTES = 1000
"""If the maps of every step are smaller than this, they are not compressed further."""
QUANTIZATION_LEVELS = (127, 63)
"""Numbers of levels above 0 to which weights are rounded, tried in this order.

Downsampled maps use the last number.
"""


def collect_recorded_data(run: Record, *, after: int = -1) -> dict[str, Any]:
    """Attention measures, samples, calibration, events and sections of a run, without its maps.

    Measures, map steps and events are those of steps greater than `after`. Samples are generated
    texts; sections are parts of the page that the run's task adds.
    """
    return {
        "measures": collect_measures(run, after=after),
        "layers": run.metadata("attention/layers") or [],
        "heads": run.metadata("attention/heads") or [],
        "labels": load_map_labels(run),
        "layer_labels": run.metadata("attention/axis_labels"),
        "image": load_image_page_data(run, after=after),
        "map_steps": [step for step in run.map_steps() if step > after],
        "downsampling": {},
        "example_steps": load_example_steps(run),
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
        **(_collect_results(run) if isinstance(run, Run) else NO_RESULTS),
    }


def _collect_results(run: Run) -> dict[str, Any]:
    """What evaluation, calibration and task left in a run folder."""
    calibration, errors = load_calibration_data(run)
    evaluation_sections, evaluation_errors = load_evaluation_data(run)
    return {
        "calibration": calibration,
        "segmentation": load_segmentation_data(run),
        "evaluation": load_evaluation_scores(run),
        "sections": [*evaluation_sections, *load_sections(run)],
        "notes": [*errors, *evaluation_errors],
    }


def load_example_steps(run: Record) -> list[int]:
    """Steps at which a focus run recorded its examples; none for other tasks and older runs."""
    try:
        return run.measure(FOCUS_ARRAY)[0].tolist()
    except RunError:
        return []


def load_vectors(run: Record) -> dict[str, Any]:
    """Queries and keys of the maps' example at one step (capture/vector_encoding.py), if stored."""
    stored = run.metadata(VECTORS_KEY)
    layers = check_vectors(stored.get("layers")) if isinstance(stored, dict) else {}
    step = stored.get("step") if isinstance(stored, dict) else None
    if not layers or type(step) is not int:
        return NO_VECTORS
    return {"vectors": layers, "vector_step": step}


def load_sections(run: Run) -> list[dict[str, Any]]:
    """The page sections that the run's task adds, such as plots of its own."""
    try:
        task = tasks.get(str(run.settings.get("task", "")))
    except UnknownNameError:  # a task of another version, or a user's own
        return []
    return [section.to_dict() for section in task.page_sections(run)]


def load_evaluation_data(run: Run) -> tuple[list[dict[str, Any]], list[str]]:
    """Tables of the newest `neural evaluate` as page sections, and error messages."""
    try:
        sections = load_evaluation_sections(run.path)
    except ValueError as error:
        return [], [str(error)]
    return [
        # the page tells sections apart by their titles
        {**section.to_dict(), "title": _title_section(index, section.title)}
        for index, section in enumerate(sections)
    ], []


def load_evaluation_scores(run: Run) -> dict[str, Any] | None:
    """Scores of the newest `neural evaluate`, the monitored metric first; None without any."""
    try:
        summary = load_evaluation_summary(run.path)
    except ValueError:  # `load_evaluation_data` reports it
        return None
    if summary is None:
        return None
    monitored = get_monitored_metric(str(run.settings.get("task", "")))[0].removeprefix("valid/")
    names = sorted(summary.scores, key=lambda name: name != monitored)
    scores = [{"name": name, **summary.scores[name]} for name in names]
    return {"time": summary.time, "data": summary.data, "scores": scores}


def _title_section(index: int, title: str) -> str:
    """Title of a table of an evaluation: that of the first one is the run's name in a terminal."""
    if index == 0:
        return "Evaluation"
    return f"Evaluation: {title}" if title else f"Evaluation ({index + 1})"


def collect_measures(run: Record, *, after: int = -1) -> dict[str, dict[str, Any]]:
    """All attention measures by name, encoded, with unit and description."""
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
    """Encode one measure as JSON data.

    `values` are [step, layer, head], [step, layer] or, for pairs of layers, [step, layer, layer].
    """
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
    except UnknownNameError:  # a measure of another version, or a user's own
        return "pair" if name.endswith("_between") else "head"


def load_step_maps(run: Record, step: int) -> bytes:
    """All maps of a step in the order of the layers, packed into one block."""
    layers = run.metadata("attention/layers") or []
    maps = run.maps(step)
    order = {name: index for index, name in enumerate(layers)}
    return pack_step_maps(
        {name: maps[name] for name in sorted(maps, key=lambda name: order.get(name, len(order)))}
    )


def pack_step_maps(maps: Mapping[str, bytes]) -> bytes:
    """Pack encoded maps by layer name into one block; their order is that of the page."""
    chunks = [struct.pack("<4sBI", MAPS_MAGIC, MAPS_VERSION, len(maps))]
    for name, encoded_map in maps.items():
        encoded_name = name.encode()
        chunks += [struct.pack("<H", len(encoded_name)), encoded_name]
        chunks += [struct.pack("<I", len(encoded_map)), encoded_map]
    return b"".join(chunks)


def load_map_labels(run: Record) -> dict[str, list[str]] | None:
    """Labels of rows (queries) and columns (keys) of maps: tokens of the first probe example."""
    axes = (run.metadata("attention/axis_labels") or {}).values()
    for labels in axes:  # those of the first layer that has any
        if labels["queries"] or labels["keys"]:
            queries, keys = labels["queries"], labels["keys"]
            return {"queries": queries or keys, "keys": keys or queries}
    labels = run.metadata("probe/labels")
    if axes or not labels:
        return None
    return {"queries": list(map(str, labels[0])), "keys": list(map(str, labels[0]))}


def load_calibration_data(run: Run) -> tuple[dict[str, Any] | None, list[str]]:
    """The calibration of a run's probabilities as JSON data, and error messages.

    Only runs that segment texts have one. It has reliability diagrams and scores for two questions:
    "boundary" (does a segment begin here?) and "label" (which class has the segment?).
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
        "elements": choice.elements,
        "documents": choice.documents,
        "interval_basis": choice.interval_basis,
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
    """Step → its maps as one block (`pack_step_maps`)."""
    downsampling: dict[int, int]
    """Step → downsampling factor; only steps with a factor above 1."""
    notes: list[str]
    """Sentences about what was left out."""


def share_map_bytes(runs: Sequence[Record], max_bytes: int = MAX_MAP_BYTES) -> list[int]:
    """How many bytes the maps of each run may take, together `max_bytes`.

    A run that needs less than an equal share, or has no maps, leaves the rest to the others.
    """
    needs = [sum(map(len, _load_maps(run).values())) for run in runs]
    shares = [0] * len(runs)
    remaining_bytes = max_bytes
    # from the smallest need up, so that what a run leaves is known before larger runs get theirs
    order = sorted(range(len(runs)), key=needs.__getitem__)
    for position, index in enumerate(order):
        shares[index] = min(needs[index], remaining_bytes // (len(order) - position))
        remaining_bytes -= shares[index]
    return shares


def compress_maps(run: Record, max_bytes: int = MAX_MAP_BYTES) -> CompressedMaps:
    """The maps of a run in about `max_bytes` or less.

    Of more than MAX_MAP_STEPS steps, that many are evenly chosen. If their maps are too large,
    weights are rounded to fewer levels. If that is not enough, neighbouring cells are merged, as
    few as possible. All steps have the same resolution: a change of it would look like a change of
    attention.
    """
    exact = _load_maps(run)
    steps = list(exact)
    all_step_count = len(run.map_steps())
    notes = []
    if len(steps) < all_step_count:
        notes.append(f"maps of {len(steps)} of {all_step_count} steps, evenly chosen")
    if _total_bytes(exact) <= max_bytes:
        return CompressedMaps(exact, {}, notes)
    factor, levels, reduced = 1, 0, exact  # for type checkers only: the loop always sets them
    for factor, levels in _compression_settings():
        # the middle step predicts the total, which saves compressing all steps
        sample_bytes = len(_downsample_step(run, steps[len(steps) // 2], factor, levels))
        predicted_bytes = sample_bytes * len(exact)
        if predicted_bytes > SKIP_SIZE_RATIO * max_bytes and sample_bytes >= MIN_STEP_BYTES:
            continue
        reduced = {step: _downsample_step(run, step, factor, levels) for step in exact}
        if _total_bytes(reduced) <= max_bytes or all(
            len(packed) < MIN_STEP_BYTES for packed in reduced.values()
        ):
            break
    reduction = _describe_reduction(factor, levels)
    source = "; the run folder has all weights" if run.path else ""
    notes.append(f"to keep this file small, {reduction}{source}")
    return CompressedMaps(reduced, dict.fromkeys(reduced, factor) if factor > 1 else {}, notes)


def _load_maps(run: Record) -> dict[int, bytes]:
    """Step → its maps, packed; at most MAX_MAP_STEPS steps, evenly chosen."""
    steps = run.map_steps()
    if len(steps) > MAX_MAP_STEPS:
        indices = np.linspace(0, len(steps) - 1, MAX_MAP_STEPS).astype(int)
        steps = [steps[index] for index in indices]
    return {step: load_step_maps(run, step) for step in steps}


def downsample_map(encoded_map: bytes, factor: int, levels: int) -> bytes:
    """Merge `factor` × `factor` weights into a cell and round it to `levels` levels above 0.

    A cell is the sum over its keys and the mean over its queries, so rows still have their sum.
    Levels are equidistant in √weight, as in the encoding, so that small weights stay visible.
    """
    _, _, _, queries, keys, _, query_offset = MAP_HEADER.unpack_from(encoded_map)
    weights = decode_map(encoded_map, hidden=np.nan)
    if factor > 1:
        rows, columns = np.arange(0, queries, factor), np.arange(0, keys, factor)

        def merge(cells: np.ndarray) -> np.ndarray:
            return np.add.reduceat(np.add.reduceat(cells, columns, axis=2), rows, axis=1)

        means = merge(np.nan_to_num(weights)) / np.diff([*rows, queries])[:, None]
        weights = np.where(merge((~np.isnan(weights)).astype(int)) > 0, means, np.nan)
    # the sign matters for signed maps only: other weights are not negative
    scale = max(1.0, float(np.abs(np.nan_to_num(weights)).max(initial=0.0)))
    roots = np.rint(np.sqrt(np.abs(weights) / scale) * levels) / levels
    rounded = np.sign(weights) * np.square(roots) * scale
    return encode_map(
        rounded,
        query_offset=-(-query_offset // factor),  # −(−a // b) rounds a / b up
        signed=is_signed_map(encoded_map),
    )


def _compression_settings() -> Iterator[tuple[int, int]]:
    """(downsampling factor, weight levels) in the order of decreasing size of the maps."""
    yield from ((1, levels) for levels in QUANTIZATION_LEVELS)
    yield from ((factor, QUANTIZATION_LEVELS[-1]) for factor in count(2))


def _describe_reduction(factor: int, levels: int) -> str:
    """What a compression setting does to the maps, for a note on the page."""
    if factor > 1:
        return f"a cell of a map stands for {factor} × {factor} positions"
    # rounding to multiples of 1 / levels in √weight changes a weight by up to 1 / levels
    return f"weights are off by up to {1 / levels:.3f}"


def _downsample_step(run: Record, step: int, factor: int, levels: int) -> bytes:
    maps = run.maps(step)
    # `maps` may also have further probe examples under other names; they are left out
    layers = [name for name in run.metadata("attention/layers") or [] if name in maps]
    with add_map_location(run.path or Path(run.name), step):
        return pack_step_maps({name: downsample_map(maps[name], factor, levels) for name in layers})


def _total_bytes(steps: dict[int, bytes]) -> int:
    return sum(map(len, steps.values()))
