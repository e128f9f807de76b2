"""Evaluate a segmentation run on held-out documents, beside every baseline.

The lift is the improvement of the run over the best baseline, per score (score_table.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from neural.core.page_section import PageSection
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
    "boundary_f1": "F1",
    "boundary_f1_within_1": "±1",
    "boundary_f1_within_2": "±2",
    "boundary_f1_macro": "macro F1",
    "pk": "Pk",
    "window_diff": "WindowDiff",
    "boundary_similarity": "B",
    "label_f1": "label F1",
}
"""Scores in the table and the headers of their columns; all others are in the JSON."""


@dataclass(frozen=True, kw_only=True)
class SegmentationEvaluation:
    """Scores of a segmenter on documents."""

    table: ScoreTable
    data: EvaluationData
    pipeline: SegmentationPipeline
    threshold: float
    """Boundary probability above which a segment begins."""
    notes: tuple[str, ...]

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
        """Two tables: scores beside the baselines, and intervals with the lift."""
        table = self.table
        model = next(iter(table.rows))
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
    """Evaluate on the test split of the run's documents, or on other documents as `data`.

    Without a test split the validation split is used. Training documents are refused, unless
    `allow_duplicates`.
    """
    pipeline = pipeline_from_run(run)
    held_out = load_evaluation_data(run, "test", data, allow_duplicates=allow_duplicates)
    return evaluate_pipeline(pipeline, held_out, threshold=threshold)


def evaluate_pipeline(
    pipeline: SegmentationPipeline, data: EvaluationData, *, threshold: float | None = None
) -> SegmentationEvaluation:
    """Evaluate any pipeline on any documents; `threshold` replaces that of the pipeline."""
    logits = [pipeline.scores(document) for document in data.documents]
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
    """Both ends; a dash if they are unknown."""
    return (
        f"{_format_signed(interval.low, plus='')} … {_format_signed(interval.high, plus='')}"
        if not math.isnan(interval.low)
        else "–"
    )


def _format_signed(value: float, plus: str = "+") -> str:
    return "–" if math.isnan(value) else f"{value:{plus}.3f}".replace("-", "−")
