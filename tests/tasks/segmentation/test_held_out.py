"""Recording of validation documents: which ones, their texts, and the check when they are read."""

import json
from dataclasses import replace

import numpy as np
import pytest

from neural.tasks.segmentation.collate import SegmentationClasses, SegmentationExample
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.held_out import (
    MAX_SHOWN_DOCUMENTS,
    MAX_SHOWN_ELEMENTS,
    MAX_TEXT_CHARACTERS,
    describe_held_out,
    is_held_out,
    select_recorded,
)

CLASSES = SegmentationClasses("boundaries", ("inside", "boundary"))


def make_documents(*lengths):
    return [
        SegmentationDocument(
            f"document {index}",
            tuple(f"sentence {element}" for element in range(length)),
            boundaries=np.arange(length) % 4 == 3,
        )
        for index, length in enumerate(lengths)
    ]


def make_examples(documents):
    return [
        SegmentationExample(
            index,
            0,
            np.zeros((len(document), 2)),
            document.boundaries.astype(int),
            document.boundaries,
        )
        for index, document in enumerate(documents)
    ]


def test_documents_that_do_not_fit_are_left_out():
    examples = make_examples(make_documents(5, 9, 4, 2))
    assert select_recorded(examples, 11) == [0, 2, 3]
    assert select_recorded(examples) == [0, 1, 2, 3]
    assert select_recorded(make_examples(make_documents(30)), 20) == []


def test_lengths_and_boundaries_of_all_documents_are_recorded_and_the_texts_of_some():
    documents = make_documents(*[5] * (MAX_SHOWN_DOCUMENTS + 2), MAX_SHOWN_ELEMENTS + 3)
    record = describe_held_out(make_examples(documents), documents, CLASSES)
    assert record["documents"] == len(documents)
    assert record["lengths"] == [len(document) for document in documents]
    assert record["boundaries"][0] == [3]
    assert [entry["document"] for entry in record["shown"]] == list(range(MAX_SHOWN_DOCUMENTS))
    assert record["shown"][1]["texts"] == list(documents[1].elements)
    assert "labels" not in record["shown"][0]
    assert is_held_out(json.loads(json.dumps(record)))


def test_long_documents_and_long_texts_are_cut():
    document = make_documents(MAX_SHOWN_ELEMENTS + 3)[0]
    document = replace(document, elements=("x" * 999, *document.elements[1:]))
    record = describe_held_out(make_examples([document]), [document], CLASSES)
    (shown,) = record["shown"]
    assert len(shown["texts"]) == MAX_SHOWN_ELEMENTS
    assert len(shown["texts"][0]) == MAX_TEXT_CHARACTERS
    assert is_held_out(record)


def test_labels_are_recorded_if_they_are_the_target():
    documents = make_documents(5)
    classes = SegmentationClasses("labels", ("verse", "chorus"))
    record = describe_held_out(make_examples(documents), documents, classes)
    assert record["labels"] == ["verse", "chorus"]
    assert record["shown"][0]["labels"] == [0, 0, 0, 1, 0]
    assert is_held_out(record)


def test_without_validation_documents_the_record_is_empty():
    record = describe_held_out([], [], CLASSES)
    assert (record["documents"], record["lengths"], record["shown"]) == (0, [], [])
    assert is_held_out(record)


@pytest.mark.parametrize(
    "change",
    [
        {"lengths": [5, 0]},
        {"lengths": "5"},
        {"boundaries": [[3]]},
        {"boundaries": [[0], [3]]},
        {"boundaries": [[9], [3]]},
        {"boundaries": [[3, 3], [3]]},
        {"boundaries": [[None], [3]]},
        {"documents": "2"},
        {"labels": [1]},
        {"shown": [{"document": 2, "name": "x", "texts": []}]},
        {"shown": [{"document": 0, "name": 1, "texts": []}]},
        {"shown": [{"document": 0, "name": "x", "texts": ["x"] * 6}]},
        {"shown": [{"document": 0, "name": "x", "texts": [None]}]},
        {"shown": [{"document": 0, "name": "x", "texts": ["x"], "labels": [4]}]},
    ],
)
def test_a_record_whose_parts_do_not_fit_is_rejected(change):
    documents = make_documents(5, 5)
    record = describe_held_out(make_examples(documents), documents, CLASSES)
    assert is_held_out(record)
    assert not is_held_out({**record, **change})
    assert not is_held_out([record])
