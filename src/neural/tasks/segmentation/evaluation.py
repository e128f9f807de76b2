"""Evaluate a segmentation run and all baselines on held-out documents (`neural evaluate`).

A baseline is an untrained method. The lift is the improvement of the run over the best baseline,
per score (score_table.py). A pipeline is a trained model with its features and calibration. A
`PageSection` is a titled text or table to print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from neural.core.page_section import PageSection
from neural.core.printed_sections import PrintedSections
from neural.tasks.segmentation.confidence_intervals import ConfidenceInterval, SourceClusters
from neural.tasks.segmentation.evaluation_data import (
    EvaluationData,
    encode_labels,
    load_evaluation_data,
)
from neural.tasks.segmentation.pipeline import SegmentationPipeline, pipeline_from_run
from neural.tasks.segmentation.score_table import ScoreTable, run_baselines, score_segmenters
from neural.tasks.task import TrainedRun

SCORE_COLUMNS = {
    "boundary_f1": "F1",  # of the boundaries of all documents together
    "boundary_f1_within_1": "±1",
    "boundary_f1_within_2": "±2",
    "boundary_f1_macro": "macro F1",  # mean of the F1 of each document
    "pk": "Pk",
    "window_diff": "WindowDiff",
    "boundary_similarity": "B",
    "label_f1": "label F1",
}
"""Scores that the printed table shows, and the headers of their columns.

The JSON output (`to_dict`) contains all scores.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class SegmentationEvaluation(PrintedSections):
    """Scores of a pipeline and of all baselines on documents."""

    table: ScoreTable
    data: EvaluationData
    pipeline: SegmentationPipeline
    threshold: float
    """Boundary probability above which a segment begins."""
    notes: tuple[str, ...]
    """Warnings for the user, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with None for NaN."""
        return {
            "segmenter": self.pipeline.name,
            "data": self.data.description,
            "threshold": self.threshold,
            "calibration": self.pipeline.calibration.name(),
            "notes": list(self.notes),
            **replace_nan(self.table.to_dict()),
        }

    def to_sections(self, width: int) -> list[PageSection]:
        """Two tables to print: all scores, and the run's scores with intervals and lifts.

        In the first table, a star marks the best baseline of each column.
        """
        table = self.table
        model = next(iter(table.rows))  # the first row is the run, the others are baselines
        columns = {
            name: header for name, header in SCORE_COLUMNS.items() if name in table.rows[model]
        }
        method = self.pipeline.calibration.name()
        calibration_note = "not calibrated" if method == "none" else f"calibrated ({method})"
        lines = [
            f"on {self.data.description}",
            f"threshold {self.threshold:.3g}, {calibration_note}",
            *(f"note: {note}" for note in self.notes),
        ]
        best_baselines = {
            score: table.lifts[score].baseline for score in columns if score in table.lifts
        }
        score_rows = []
        for name, row in table.rows.items():
            cells = [
                f"{'*' * (best_baselines.get(score) == name)}{row[score].value:.3f}"
                if score in row
                else "–"
                for score in columns
            ]
            score_rows.append((name.replace("_", " "), *cells))
        lift_rows = []
        for name, header in columns.items():
            score, lift = table.rows[model][name], table.lifts.get(name)
            lift_cells = (
                (_format_signed(lift.difference.value), _format_interval(lift.difference))
                if lift
                else ("", "")
            )
            lift_rows.append((header, f"{score.value:.3f}", _format_interval(score), *lift_cells))
        return [
            PageSection(
                title=self.pipeline.name,
                text="\n".join(lines),
                table_head=("", *columns.values()),
                table_rows=score_rows,
            ),
            PageSection(
                title="",
                text="* the best baseline; lower is better for Pk and WindowDiff, "
                "higher for the others",
                table_head=("", "this run", "95 % interval", "lift", "95 % interval"),
                table_rows=lift_rows,
            ),
            PageSection(
                title="",
                text="lift: improvement over the best baseline; "
                "the interval includes the choice of that baseline\n"
                f"95 % intervals by jackknife over {table.interval_basis}",
            ),
        ]


def evaluate(
    run: TrainedRun,
    data: str | None = None,
    *,
    threshold: float | None = None,
    allow_duplicates: bool = False,
) -> SegmentationEvaluation:
    """Evaluate a run on the test split of its documents, or on the file or folder `data`.

    Without a test split the validation split is used. TaskError if training documents are among
    them, unless `allow_duplicates`.
    """
    pipeline = pipeline_from_run(run)
    held_out = load_evaluation_data(run, "test", data, allow_duplicates=allow_duplicates)
    return evaluate_pipeline(pipeline, held_out, threshold=threshold)


def evaluate_pipeline(
    pipeline: SegmentationPipeline, data: EvaluationData, *, threshold: float | None = None
) -> SegmentationEvaluation:
    """Evaluate any pipeline on any documents; `threshold` replaces that of the pipeline."""
    logits = [pipeline.logits(document) for document in data.documents]
    boundaries = [
        pipeline.decode(pipeline.boundary_probabilities(document_logits), threshold=threshold)
        for document_logits in logits
    ]
    targets, notes = encode_labels(data, pipeline), [*pipeline.notes, *data.notes]
    labels = None
    if targets is not None:
        predicted_labels = [
            pipeline.label_probabilities(document_logits).argmax(axis=1)
            for document_logits in logits
        ]
        labels = targets, predicted_labels
    if pipeline.target_kind == "labels" and targets is None:
        notes.append("these documents have no labels: only boundaries are scored")
    table = score_segmenters(
        data.truths,
        boundaries,
        labels=labels,
        name="this run",
        clusters=SourceClusters.from_documents(data.documents),
        baselines=run_baselines(
            [document.elements for document in data.documents], data.training_boundaries
        ),
    )
    return SegmentationEvaluation(
        table=table,
        data=data,
        pipeline=pipeline,
        threshold=threshold or pipeline.threshold,
        notes=tuple(notes),
    )


def replace_nan(value: Any) -> Any:
    """The same nested dict with None for NaN."""
    if isinstance(value, dict):
        return {key: replace_nan(item) for key, item in value.items()}
    return None if isinstance(value, float) and value != value else value


def _format_interval(interval: ConfidenceInterval) -> str:
    """Both ends of the interval; a dash if they are NaN."""
    return (
        f"{_format_signed(interval.low, plus='')} … {_format_signed(interval.high, plus='')}"
        if not math.isnan(interval.low)
        else "–"
    )


def _format_signed(value: float, plus: str = "+") -> str:
    return "–" if math.isnan(value) else f"{value:{plus}.3f}".replace("-", "−")
