"""Validation documents of a segmentation run with their predictions, for its page.

A run records the documents and, at every validation, P(a segment begins) of each element, a
sentence or line (tasks/segmentation/held_out.py). The page shows those of the best validation,
whose weights the run is used with. After `neural calibrate`, the calibration of the run is applied
to the recorded probabilities. Older runs recorded none of this.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from neural.core.errors import TaskError
from neural.findings.run_summary import find_best_validation
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks.segmentation.calibration_selection import RunCalibration
from neural.tasks.segmentation.held_out import (
    HELD_OUT_KEY,
    PREDICTED_LABELS_KEY,
    PROBABILITIES_KEY,
)
from neural.tasks.segmentation.probability import probabilities_to_margins

DOCUMENT_KEYS = ("documents", "lengths", "boundaries", "labels", "shown")
"""Keys of the page data that are about documents, without predictions: equal for many runs."""
DEFAULT_THRESHOLD = 0.5
"""Threshold of a run that did not log the one it validated with."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundaryPredictions:
    """P(a segment begins) of all recorded documents, by one calibration method."""

    method: str
    """Name of the calibration method; `none` are the model's own probabilities."""
    threshold: float
    """Probability above which a segment begins."""
    documents: list[np.ndarray]
    """Probabilities of each document, (elements,); 0 at the first element."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutPredictions:
    """Recorded validation documents and their predictions at one step."""

    step: int
    record: Mapping[str, Any]
    """The metadata entry of the run (`describe_held_out`)."""
    predictions: list[BoundaryPredictions]
    """Uncalibrated, and calibrated if the run was calibrated; never empty."""
    labels: list[np.ndarray] | None
    """Index of the predicted label of each element, by document, if labels are the target."""

    @property
    def truths(self) -> list[np.ndarray]:
        """True where a segment begins, by document."""
        truths = [np.zeros(length, bool) for length in self.record["lengths"]]
        for truth, boundaries in zip(truths, self.record["boundaries"], strict=True):
            truth[boundaries] = True
        return truths

    def to_dict(self) -> dict[str, Any]:
        """JSON data of the page; probabilities are 32-bit floats in base64, as they were stored."""
        labels = self.labels
        return {
            **{key: self.record[key] for key in DOCUMENT_KEYS},
            "step": self.step,
            "predictions": [
                {
                    "method": prediction.method,
                    "threshold": prediction.threshold,
                    "data": _encode_floats(prediction.documents),
                }
                for prediction in self.predictions
            ],
            "predicted_labels": []
            if labels is None
            else [
                labels[entry["document"]][: len(entry["texts"])].tolist()
                for entry in self.record["shown"]
            ],
        }


def load_held_out(run: Run) -> HeldOutPredictions | None:
    """Recorded documents with the predictions of the best validation, or else of the last.

    None if the run recorded none, or if they do not fit together: a folder may come from anybody.
    """
    record = run.metadata(HELD_OUT_KEY)
    if not record or not record["lengths"]:
        return None
    best = find_best_validation(run)
    loaded = _load_step(run, PROBABILITIES_KEY, best.step if best else None)
    if loaded is None:
        return None
    step, probabilities = loaded
    lengths = record["lengths"]
    is_valid = probabilities.ndim == 1 and len(probabilities) == sum(lengths)
    if not is_valid or not ((probabilities >= 0) & (probabilities <= 1)).all():
        return None
    documents = _split(probabilities.astype(np.float64), lengths)
    threshold = _load_threshold(run, step)
    predictions = [BoundaryPredictions(method="none", threshold=threshold, documents=documents)]
    calibration = _load_calibration(run, step)
    if calibration is not None:
        predictions.append(_calibrate(documents, calibration))
    return HeldOutPredictions(
        step=step,
        record=record,
        predictions=predictions,
        labels=_load_labels(run, step, record),
    )


def load_segmentation_data(run: Run) -> dict[str, Any] | None:
    """`load_held_out` as JSON data of the page; None without recorded documents."""
    held_out = load_held_out(run)
    return held_out.to_dict() if held_out else None


def share_documents(run_entries: Sequence[dict[str, Any]]) -> None:
    """Keep documents that several runs of a page have in the first of them only.

    The others get the key `documents_of`, the id of that run. Seeds have the same documents, and
    their texts are most of the data.
    """
    first_ids: dict[str, str] = {}
    for entry in run_entries:
        data = entry.get("segmentation")
        if data is None:
            continue
        key = json.dumps([data[name] for name in DOCUMENT_KEYS])
        first_id = first_ids.setdefault(key, entry["id"])
        if first_id != entry["id"]:
            own = {name: value for name, value in data.items() if name not in DOCUMENT_KEYS}
            entry["segmentation"] = {**own, "documents_of": first_id}


def _load_step(run: Run, name: str, step: int | None) -> tuple[int, np.ndarray] | None:
    """(step, array) of a logged array at a step; at the last step if it has none there."""
    try:
        steps, arrays = run.measure(name)
    except RunError:  # not logged, or damaged
        return None
    index = int(np.flatnonzero(steps == step)[0]) if step in steps else len(steps) - 1
    return int(steps[index]), arrays[index]


def _load_threshold(run: Run, step: int) -> float:
    if "valid/threshold" in run.scalar_names():
        steps, values = run.scalars("valid/threshold")
        at_step = values[steps == step]
        if len(at_step) and 0 < at_step[0] < 1:
            return float(at_step[0])
    return DEFAULT_THRESHOLD


def _load_calibration(run: Run, step: int) -> RunCalibration | None:
    """The calibration of the weights of this step, if there is one."""
    try:
        calibration = RunCalibration.load(run.path)
    except TaskError:  # the page reports it where it shows the calibration
        return None
    is_current = calibration is not None and calibration.weights == f"step {step}"
    return calibration if is_current else None


def _calibrate(documents: list[np.ndarray], calibration: RunCalibration) -> BoundaryPredictions:
    """Calibrated probabilities, as `SegmentationPipeline.boundary_probabilities` computes them."""
    calibrator = calibration.boundary.calibrator
    calibrated = [calibrator(probabilities_to_margins(document)) for document in documents]
    for document in calibrated:
        document[0] = 0.0
    return BoundaryPredictions(
        method=calibrator.name(), threshold=calibration.threshold, documents=calibrated
    )


def _load_labels(run: Run, step: int, record: Mapping[str, Any]) -> list[np.ndarray] | None:
    loaded = _load_step(run, PREDICTED_LABELS_KEY, step)
    if loaded is None or loaded[0] != step or len(loaded[1]) != sum(record["lengths"]):
        return None
    labels = loaded[1]
    if not ((labels >= 0) & (labels < len(record["labels"]))).all():
        return None
    return _split(labels.astype(np.int64), record["lengths"])


def _split(values: np.ndarray, lengths: list[int]) -> list[np.ndarray]:
    """Parts of an array with these lengths."""
    edges = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    return [values[start:end] for start, end in pairwise(edges)]


def _encode_floats(documents: list[np.ndarray]) -> str:
    return base64.b64encode(np.concatenate(documents).astype("<f4").tobytes()).decode()
