"""Predictions of a segmentation run for `neural predict`: boundaries and labels of documents.

An element is a sentence or line of a document, n of them. A boundary is an element where a new
segment begins; the first element is none. A pipeline (pipeline.py) is a trained model with its
features and calibration. A `PageSection` is a titled text or table to print.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.escape import shorten
from neural.core.page_section import PageSection
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.data.jsonl import Jsonl
from neural.tasks.segmentation.data.ref import Ref
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.pipeline import SegmentationPipeline, pipeline_from_run
from neural.tasks.segmentation.reader import RawText, ReaderOptions, decode_text, read_text
from neural.tasks.task import Predictions, TrainedRun

MIN_ELEMENT_WIDTH = 20
"""Minimum width of the text of an element in characters, even in a narrow terminal."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedDocument:
    """Prediction for one document."""

    document: SegmentationDocument
    pipeline: SegmentationPipeline
    """The pipeline that made the prediction."""
    boundaries: Boundaries
    """True where a segment is predicted to begin, (n,)."""
    boundary_probabilities: np.ndarray
    """Probability that a segment begins at each element, (n,)."""
    label_probabilities: np.ndarray | None
    """Probability of each label, (n, labels); None if the model predicts boundaries only."""

    def to_records(self) -> Iterator[dict[str, Any]]:
        """Yield one JSON object for the document."""
        record: dict[str, Any] = {
            "name": self.document.name,
            "elements": list(self.document.elements),
            "boundaries": [int(index) for index in self.boundaries.nonzero()[0]],
            "threshold": self.pipeline.threshold,
            "probability": self.boundary_probabilities.round(6).tolist(),
        }
        probabilities, names = self.label_probabilities, self.pipeline.labels
        if probabilities is not None:
            record["labels"] = [names[int(best)] for best in probabilities.argmax(axis=1)]
            columns = probabilities.T.round(6).tolist()
            record["label_probabilities"] = dict(zip(names, columns, strict=True))
        yield record

    def to_section(self, width: int) -> PageSection:
        """Text for a terminal of `width` columns: one line per element, blank lines at boundaries.

        A line has the boundary probability, the most likely label with its probability if there are
        labels, and the text of the element.
        """
        segment_count = int(self.boundaries.sum()) + 1
        probabilities, names = self.label_probabilities, list(self.pipeline.labels)
        has_labels = probabilities is not None
        lines = [
            f"{len(self.document):,} elements, {segment_count:,} segment"
            f"{'s' * (segment_count != 1)}; "
            f"P(a segment begins){', label' * has_labels}"
        ]
        label_width = max(map(len, names)) if has_labels else 0
        # The boundary probability and two spaces take 6 columns, the probability of a label and
        # its spaces 7; 4 columns stay free at the right.
        text_width = max(MIN_ELEMENT_WIDTH, width - 10 - (label_width + 7) * has_labels)
        for index, element in enumerate(self.document.elements):
            label = ""
            if probabilities is not None:
                best = int(probabilities[index].argmax())
                label = f"{names[best]:<{label_width}} {probabilities[index, best]:.2f}  "
            if self.boundaries[index]:
                lines.append("")
            probability = "    " if index == 0 else f"{self.boundary_probabilities[index]:.2f}"
            lines.append(f"{probability}  {label}{shorten(element, text_width)}".rstrip())
        return PageSection(title=self.document.name, text="\n".join(lines))


def predict_documents(run: TrainedRun, source: str | bytes) -> Predictions:
    """Predict for the documents of the file at the path `source`, or for the bytes of one text.

    The predictions are a generator: documents are processed one by one.
    """
    pipeline = pipeline_from_run(run)
    documents, notes = _read_documents(source, pipeline)
    predictions = (_predict_document(pipeline, document) for document in documents)
    return Predictions(predictions, (*pipeline.notes, *notes))


def _predict_document(
    pipeline: SegmentationPipeline, document: SegmentationDocument
) -> PredictedDocument:
    logits = pipeline.logits(document)
    probabilities = pipeline.boundary_probabilities(logits, document.layout)
    labels = pipeline.label_probabilities(logits) if pipeline.target_kind == "labels" else None
    return PredictedDocument(
        document=document,
        pipeline=pipeline,
        boundaries=pipeline.decode(
            probabilities,
            can_begin=None if document.layout is None else document.layout.can_begin,
        ),
        boundary_probabilities=probabilities,
        label_probabilities=labels,
    )


def _read_documents(
    source: str | bytes, pipeline: SegmentationPipeline
) -> tuple[list[SegmentationDocument], list[str]]:
    """Documents and notes.

    A `.jsonl` or `.ref` file (the format of Choi's benchmark) may have several documents; any other
    file is one text.

    Segments that a file declares are ignored.
    """
    if isinstance(source, str):
        for reader in (Jsonl, Ref):
            if Path(source).suffix.lower() in reader.suffixes:
                options = ReaderOptions(pipeline.unit, require_segments=False)
                return reader.read(Path(source), options)
    raw: RawText = (
        read_text(Path(source))
        if isinstance(source, str)
        else decode_text(source, "standard input")
    )
    return [SegmentationDocument.from_text(raw.text, raw.name, unit=pipeline.unit)], list(raw.notes)
