"""Evaluate a segmenter and all baselines on documents with known segments (`neural evaluate`).

The segmenter is a run on documents that it was not trained on, or the one of the package on any
documents. A baseline is an untrained method. The lift is the improvement over the best baseline,
per score (score_table.py). A pipeline is a trained model with its features and calibration. A
decoder makes boundaries of its probabilities (decoding.py). A `PageSection` is a titled text or
table to print.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from neural.core.errors import TaskError
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Table, tabulate_scores
from neural.tasks.segmentation.evaluation_data import (
    EvaluationData,
    encode_labels,
    load_evaluation_data,
    load_unseen_data,
)
from neural.tasks.segmentation.pipeline import (
    Decoder,
    SegmentationPipeline,
    load_shipped_pipeline,
    pipeline_from_run,
)
from neural.tasks.segmentation.reader import LayoutHandling, ReaderOptions
from neural.tasks.segmentation.score_table import ScoreTable, run_baselines, score_segmenters
from neural.tasks.segmentation.smooth_calibration_error import (
    SmoothCalibrationError,
    estimate_smooth_error,
)
from neural.tasks.segmentation.source_clusters import SourceClusters
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
class SegmentationEvaluation(Result):
    """Scores of a pipeline and of all baselines on documents."""

    table: ScoreTable
    data: EvaluationData
    pipeline: SegmentationPipeline
    threshold: float
    """Boundary probability above which a segment begins."""
    decoder: Decoder
    """How boundaries were decided."""
    calibration_error: SmoothCalibrationError | None
    """None if all documents have a single element."""
    notes: tuple[str, ...]
    """Warnings for the user, one sentence each."""

    def build_dict(self) -> dict[str, Any]:
        """Scores of all segmenters, and the lifts of the model."""
        return {
            "segmenter": self.pipeline.name,
            "data": self.data.description,
            "threshold": self.threshold,
            "decoder": self.decoder,
            "calibration": self.pipeline.calibration.name(),
            "smooth_calibration_error": self.calibration_error and self.calibration_error.to_dict(),
            "notes": list(self.notes),
            **self.table.to_dict(),
        }

    @property
    def tables(self) -> dict[str, Table]:
        """`scores` of the model and the baselines."""
        return {"scores": tabulate_scores(self.table.rows)}

    def to_sections(self, width: int) -> list[PageSection]:
        """Two tables to print: all scores, and those of the model with intervals and lifts.

        In the first table, a star marks the best baseline of each column.
        """
        table = self.table
        model = next(iter(table.rows))  # the others are baselines
        columns = {
            name: header for name, header in SCORE_COLUMNS.items() if name in table.rows[model]
        }
        method = self.pipeline.calibration.name()
        calibration_note = "not calibrated" if method == "none" else f"calibrated ({method})"
        lines = [
            f"on {self.data.description}",
            f"{self._describe_decoder()}, {calibration_note}",
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
                (lift.difference.format_value(signed=True), lift.difference.format_interval())
                if lift
                else ("", "")
            )
            lift_rows.append((header, score.format_value(), score.format_interval(), *lift_cells))
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
                table_head=("", model, "95 % interval", "lift", "95 % interval"),
                table_rows=lift_rows,
            ),
            PageSection(
                title="",
                text="lift: improvement over the best baseline; "
                "the interval includes the choice of that baseline\n"
                f"95 % intervals by jackknife over {table.interval_basis}"
                + (
                    f"\nsmooth calibration error {self.calibration_error}"
                    if self.calibration_error
                    else ""
                ),
            ),
        ]

    def _describe_decoder(self) -> str:
        if self.decoder == "expected_pk":
            return "decoded for the smallest expected Pk"
        return f"threshold {self.threshold:.3g}"


def evaluate(
    run: TrainedRun,
    data: str | None = None,
    *,
    threshold: float | None = None,
    decode: Decoder | None = None,
    layout: LayoutHandling | None = None,
    allow_duplicates: bool = False,
) -> SegmentationEvaluation:
    """Evaluate a run on the test split of its documents, or on the file or folder `data`.

    Without a test split the validation split is used. `decode` is how boundaries are decided, by
    default as the run does; `layout` says whether documents of `data` with titled parts keep
    headings and blank lines. TaskError if training documents are among the documents, unless
    `allow_duplicates`.
    """
    pipeline = pipeline_from_run(run)
    held_out = load_evaluation_data(
        run, "test", data, layout=layout, allow_duplicates=allow_duplicates
    )
    return evaluate_pipeline(pipeline, held_out, threshold=threshold, decode=decode)


def evaluate_shipped(
    data: str,
    *,
    threshold: float | None = None,
    decode: Decoder | None = None,
    layout: LayoutHandling | None = None,
) -> SegmentationEvaluation:
    """Evaluate the segmenter of the package on the file or folder `data`.

    The options are those of `evaluate`. Needs no torch.
    """
    pipeline = load_shipped_pipeline()
    documents = load_unseen_data(data, ReaderOptions(pipeline.unit, layout=layout or "remove"))
    return evaluate_pipeline(
        pipeline, documents, threshold=threshold, decode=decode, name="shipped"
    )


def evaluate_pipeline(
    pipeline: SegmentationPipeline,
    data: EvaluationData,
    *,
    threshold: float | None = None,
    decode: Decoder | None = None,
    name: str = "this run",
) -> SegmentationEvaluation:
    """Evaluate any pipeline on any documents.

    `threshold` and `decode` replace those of the pipeline; `name` is its row in the table.
    """
    if threshold is not None and decode == "expected_pk":
        raise TaskError("a threshold has no effect on `expected_pk`: leave one of them out")
    # A threshold alone asks for decoding by it.
    decoder = decode or ("threshold" if threshold is not None else pipeline.decoder)
    pipeline = replace(pipeline, decoder=decoder)
    logits = [pipeline.logits(document) for document in data.documents]
    probabilities = [
        pipeline.boundary_probabilities(document_logits, document.layout)
        for document, document_logits in zip(data.documents, logits, strict=True)
    ]
    boundaries = [
        pipeline.decode(
            document_probabilities,
            threshold=threshold,
            can_begin=document.layout.can_begin if document.layout is not None else None,
        )
        for document, document_probabilities in zip(data.documents, probabilities, strict=True)
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
        name=name,
        clusters=SourceClusters.from_documents(data.documents),
        baselines=run_baselines(
            [document.elements for document in data.documents], data.training_boundaries
        ),
    )
    has_gaps = any(len(document) > 1 for document in data.documents)
    return SegmentationEvaluation(
        table=table,
        data=data,
        pipeline=pipeline,
        threshold=threshold or pipeline.threshold,
        decoder=decoder,
        calibration_error=estimate_smooth_error(probabilities, data.truths) if has_gaps else None,
        notes=tuple(notes),
    )
