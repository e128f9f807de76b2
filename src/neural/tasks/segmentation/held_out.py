"""Validation documents that a run records, so that its page can show and score them.

An element is a sentence or line of a document. The metadata entry HELD_OUT_KEY of a run has the
lengths and the true boundaries of its validation documents, and the texts of a few of them. Every
validation logs the array PROBABILITIES_KEY: P(a segment begins) of each element of these documents,
one document after the other, before calibration. With labels as the target there is also
PREDICTED_LABELS_KEY, the index of the most likely label.

The texts are those of the user's documents. They stay in the run folder and on pages made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from neural.core.escape import shorten
from neural.core.metadata_fields import MetadataField, is_count, is_text, list_of
from neural.tasks.segmentation.collate import SegmentationClasses, SegmentationExample
from neural.tasks.segmentation.document import SegmentationDocument

HELD_OUT_KEY = "segmentation/held_out"
PROBABILITIES_KEY = "valid/boundary_probabilities"
PREDICTED_LABELS_KEY = "valid/predicted_labels"
MAX_RECORDED_ELEMENTS = 20_000
"""Elements of all recorded documents together: 80 kB for each validation."""
MAX_SHOWN_DOCUMENTS = 8
"""Documents whose texts are recorded."""
MAX_SHOWN_ELEMENTS = 200
"""Elements of a document whose texts are recorded; the rest of a longer document is only scored."""
MAX_TEXT_CHARACTERS = 160
"""A longer text of an element is cut."""


def select_recorded(
    examples: Sequence[SegmentationExample], max_elements: int = MAX_RECORDED_ELEMENTS
) -> list[int]:
    """Indices of the examples to record: the first ones, without those that are too long."""
    selected, elements = [], 0
    for index, example in enumerate(examples):
        if elements + len(example) <= max_elements:
            selected.append(index)
            elements += len(example)
    return selected


def describe_held_out(
    examples: Sequence[SegmentationExample],
    documents: Sequence[SegmentationDocument],
    classes: SegmentationClasses,
) -> dict[str, Any]:
    """The metadata entry HELD_OUT_KEY; `documents` are all documents of the task.

    `boundaries` are the indices of the elements where a segment begins. `document` is an index into
    `lengths` and `boundaries`.
    """
    recorded = [examples[index] for index in select_recorded(examples)]
    shown = []
    for index, example in enumerate(recorded[:MAX_SHOWN_DOCUMENTS]):
        document = documents[example.document]
        texts = document.elements[:MAX_SHOWN_ELEMENTS]
        entry: dict[str, Any] = {
            "document": index,
            "name": document.name,
            "texts": [shorten(text, MAX_TEXT_CHARACTERS) for text in texts],
        }
        if classes.target_kind == "labels":
            entry["labels"] = example.target[:MAX_SHOWN_ELEMENTS].tolist()
        shown.append(entry)
    return {
        "documents": len(examples),
        "lengths": [len(example) for example in recorded],
        "boundaries": [np.flatnonzero(example.boundaries).tolist() for example in recorded],
        "shown": shown,
        "labels": list(classes.names) if classes.target_kind == "labels" else [],
    }


def is_held_out(value: Any) -> bool:
    """Whether a value is what `describe_held_out` returns, or None; its parts agree in length."""
    if value is None:
        return True
    if not isinstance(value, dict) or not is_count(value.get("documents")):
        return False
    lengths, boundaries = value.get("lengths"), value.get("boundaries")
    shown, labels = value.get("shown"), value.get("labels")
    return (
        _is_list_of_counts(lengths)
        and all(lengths)
        and isinstance(boundaries, list)
        and len(boundaries) == len(lengths)
        and all(map(_are_positions, boundaries, lengths))
        and isinstance(labels, list)
        and list_of(is_text)(labels)
        and isinstance(shown, list)
        and all(_is_shown_document(entry, lengths, len(labels)) for entry in shown)
    )


def _is_list_of_counts(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(item is not None and is_count(item) for item in value)


def _are_positions(boundaries: Any, length: int) -> bool:
    """Whether `boundaries` are ascending indices of elements; the first element has none."""
    return (
        _is_list_of_counts(boundaries)
        and boundaries == sorted(set(boundaries))
        and all(0 < index < length for index in boundaries)
    )


def _is_shown_document(entry: Any, lengths: list[int], label_count: int) -> bool:
    if not isinstance(entry, dict) or not is_text(entry.get("name")):
        return False
    index, texts, labels = entry.get("document"), entry.get("texts"), entry.get("labels", [])
    return (
        type(index) is int
        and 0 <= index < len(lengths)
        and isinstance(texts, list)
        and all(map(is_text, texts))
        and len(texts) <= lengths[index]
        and _is_list_of_counts(labels)
        and len(labels) in (0, len(texts))
        and all(label < label_count for label in labels)
    )


HELD_OUT_FIELD = MetadataField(
    is_held_out, "the documents, lengths, boundaries and texts of validation documents"
)
