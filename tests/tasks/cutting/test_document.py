"""Documents: elements, parts, and the places of both in the text."""

import numpy as np
import pytest

from neural.tasks.cutting.document import Document, joined, parts


def test_a_part_begins_where_the_label_changes():
    document = Document("song", ("a", "b", "c", "d"), labels=np.array([0, 0, 1, 0]))
    assert document.boundaries.tolist() == [False, False, True, True]


def test_the_first_element_is_never_a_boundary():
    assert not Document("x", ("a", "b"), boundaries=np.array([True, True])).boundaries[0]


def test_without_truth_there_are_no_boundaries():
    assert Document("x", ("a", "b")).boundaries.tolist() == [False, False]


@pytest.mark.parametrize("given", [{"labels": np.zeros(3, int)}, {"boundaries": np.zeros(1, bool)}])
def test_truth_of_another_length_is_refused(given):
    with pytest.raises(ValueError, match="x has 2 elements and"):
        Document("x", ("a", "b"), **given)


def test_an_empty_document_is_refused():
    with pytest.raises(ValueError, match="empty"):
        Document.of("  \n\n ", "blank.txt")


def test_parts_joined_are_the_sections():
    sections = [("a", "b"), ("c",), ("d", "e", "f")]
    assert parts(joined("x", [*sections, ()])) == sections


def test_a_part_takes_its_indentation_along_and_leaves_blank_lines_behind():
    text = "One here.\n\n    Two there. Three.\n"
    document = Document.of(text)
    pieces = document.pieces(np.array([False, True, True]))
    assert [text[a:b] for a, b in pieces] == ["One here.\n\n", "    Two there. ", "Three.\n"]


def test_places_are_told_only_where_the_text_is_known():
    with pytest.raises(ValueError, match="not cut from a text"):
        Document("x", ("a",)).pieces(np.array([False]))
