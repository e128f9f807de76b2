"""Calibrate the probabilities of a segmentation run on held-out documents.

A segmentation model predicts at each element (sentence) of a document whether a segment begins
there, a boundary, and the element's label, if the task has labels. Boundaries are decided at the
gaps between elements, so there is no decision at the first element. Documents may share a source,
from which their text was taken: their errors are then not independent.

result = calibrate(run)            # chosen, fitted, saved as calibration.json
print(result.calibration.boundary.format_table())
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural.core.errors import TaskError
from neural.runs.errors import translate_errors
from neural.runs.run import Run
from neural.tasks.segmentation.calibration_selection import (
    CalibrationChoice,
    RunCalibration,
    choose_calibration,
    flatten_documents,
)
from neural.tasks.segmentation.evaluation_data import (
    EvaluationData,
    encode_labels,
    load_evaluation_data,
)
from neural.tasks.segmentation.pipeline import SegmentationPipeline, pipeline_from_run
from neural.tasks.segmentation.source_clusters import SourceClusters
from neural.training.trained_run import TrainedRunFolder

DIAGRAM_TITLES = {"boundary": "P(a segment begins)", "label": "confidence in the label"}
"""Titles of the reliability diagrams."""
MIN_THRESHOLD = 1e-9
"""Minimum distance of a threshold from 0 and 1, which are not valid thresholds."""


@dataclass(frozen=True, kw_only=True)
class CalibrationResult:
    """Calibration of a run, and the files it was saved to."""

    calibration: RunCalibration
    data: EvaluationData
    pipeline: SegmentationPipeline
    files: tuple[Path, ...]
    """What was not saved, and why."""


def calibrate(
    run: Run,
    data: str | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    allow_duplicates: bool = False,
) -> CalibrationResult:
    """Cross-fit every calibration method by document, choose the best, and save it in the run.

    Cross-fitting divides the documents into `folds`; each is predicted by a fit on the others.

    The documents are the run's validation split, or those of the file or folder `data`. Documents
    that the run was trained on are refused, unless `allow_duplicates`. From then on `segment`,
    `predict` and `evaluate` use the calibration.
    """
    opened = TrainedRunFolder(run)
    pipeline = pipeline_from_run(opened, uncalibrated=True)
    held_out = load_evaluation_data(opened, "valid", data, allow_duplicates=allow_duplicates)
    logits = [pipeline.logits(document) for document in held_out.documents]  # (elements, classes)
    if all(len(document) < 2 for document in held_out.documents):
        raise TaskError("nothing to calibrate on: every document has a single element and no gap")
    # log-odds of a boundary, (elements,)
    margins = [pipeline.margins(document_logits) for document_logits in logits]
    clusters = SourceClusters.from_documents(held_out.documents)
    boundary = choose_calibration(
        *flatten_documents(margins, held_out.truths),
        sources=clusters.source_pairs(gaps=True),
        folds=folds,
        seed=seed,
    )
    targets = encode_labels(held_out, pipeline)
    label = None
    if targets is not None:
        label = choose_calibration(
            *flatten_documents(logits, targets, skip_first=False),
            sources=clusters.source_pairs(gaps=False),
            folds=folds,
            seed=seed,
        )
    probabilities = [boundary.calibrator(document_margins) for document_margins in margins]
    threshold, f1 = find_best_threshold(probabilities, held_out.truths)
    calibration = RunCalibration(
        weights=opened.best_checkpoint(),
        data=held_out.description,
        boundary=boundary,
        label=label,
        threshold=threshold,
        f1=f1,
    )
    with translate_errors(f"the calibration cannot be saved in {run.path}"):
        files = [calibration.save(run.path), *save_diagrams(calibration, run.path)]
    return CalibrationResult(
        calibration=calibration,
        data=held_out,
        pipeline=pipeline,
        files=tuple(files),
    )


def save_diagrams(calibration: RunCalibration, folder: Path) -> list[Path]:
    """Draw the reliability diagrams as SVG and PNG. Returns the paths."""
    from neural.report.reliability_plot import draw_reliability

    choices: dict[str, CalibrationChoice | None] = {
        "boundary": calibration.boundary,
        "label": calibration.label,
    }
    return [
        path
        for name, choice in choices.items()
        if choice is not None
        for path in draw_reliability(
            choice.diagrams, folder / f"reliability_{name}", title=DIAGRAM_TITLES[name]
        )
    ]


def find_best_threshold(
    probabilities: Sequence[np.ndarray], truths: Sequence[np.ndarray]
) -> tuple[float, float]:
    """Threshold with the best F1 of boundaries, over the gaps of all documents, and that F1.

    The arrays, one per document, have P(boundary) and the true boundaries, (elements,). The
    threshold lies halfway between two probabilities, so that rounding errors do not change a
    decision. Without true boundaries the result is (0.5, 1.0): nothing can be missed.
    """
    p = np.concatenate([document_p[1:] for document_p in probabilities])
    is_boundary = np.concatenate([np.asarray(truth)[1:] for truth in truths]).astype(bool)
    order = np.argsort(-p, kind="stable")
    p, hits = p[order], np.cumsum(is_boundary[order])
    if len(p) == 0 or hits[-1] == 0:
        return 0.5, 1.0
    # F1 if the first 1, 2, … of the sorted elements are predicted as boundaries
    f1 = 2 * hits / (np.arange(1, len(p) + 1) + hits[-1])
    next_lower_p = np.append(p[1:], 0.0)
    f1[p == next_lower_p] = -1.0  # no threshold separates equal probabilities
    best = int(f1.argmax())
    threshold = np.clip((p[best] + next_lower_p[best]) / 2, MIN_THRESHOLD, 1 - MIN_THRESHOLD)
    return float(threshold), float(f1[best])
