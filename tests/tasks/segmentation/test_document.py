"""Documents: elements, segments, and their offsets in the text."""

import numpy as np
import pytest

from neural.tasks.segmentation.document import SegmentationDocument, join_segments, split_segments


def test_a_segment_begins_where_the_label_changes():
    document = SegmentationDocument("song", ("a", "b", "c", "d"), labels=np.array([0, 0, 1, 0]))
    assert document.boundaries.tolist() == [False, False, True, True]


def test_the_first_element_is_never_a_boundary():
    document = SegmentationDocument("x", ("a", "b"), boundaries=np.array([True, True]))
    assert not document.boundaries[0]


def test_without_truth_there_are_no_boundaries():
    assert SegmentationDocument("x", ("a", "b")).boundaries.tolist() == [False, False]


@pytest.mark.parametrize("truth", [{"labels": np.zeros(3, int)}, {"boundaries": np.zeros(1, bool)}])
def test_truth_of_another_length_is_refused(truth):
    with pytest.raises(ValueError, match="x has 2 elements and"):
        SegmentationDocument("x", ("a", "b"), **truth)


def test_an_empty_document_is_refused():
    with pytest.raises(ValueError, match="empty"):
        SegmentationDocument.from_text("  \n\n ", "blank.txt")


def test_splitting_is_the_inverse_of_joining():
    segments = [("a", "b"), ("c",), ("d", "e", "f")]
    assert split_segments(join_segments("x", [*segments, ()])) == segments


def test_indentation_belongs_to_the_segment_and_blank_lines_to_the_one_before():
    text = "One here.\n\n    Two there. Three.\n"
    document = SegmentationDocument.from_text(text)
    spans = document.segment_spans(np.array([False, True, True]))
    assert [text[start:end] for start, end in spans] == [
        "One here.\n\n",
        "    Two there. ",
        "Three.\n",
    ]


def test_spans_need_the_text():
    with pytest.raises(ValueError, match="was not split from a text"):
        SegmentationDocument("x", ("a",)).segment_spans(np.array([False]))
