"""Headings decide in documents whose author marked the parts, and only there."""

import numpy as np
import pytest

from neural.tasks.segmentation.author_headings import (
    MAX_PART_ELEMENTS,
    find_author_headings,
    follow_author_headings,
)
from neural.tasks.segmentation.document import SegmentationDocument


def make_document(headings, sentences):
    """Markdown with this many sections of this many sentences."""
    body = " ".join(["Some words stand here."] * sentences)
    return SegmentationDocument.from_text(
        "\n\n".join(f"## Section {number}\n\n{body}" for number in range(headings))
    )


def make_probabilities(document, at_headings, elsewhere):
    probabilities = np.where(document.layout.heading_level > 0, at_headings, elsewhere)
    probabilities[0] = 0.0
    return probabilities


def test_headings_become_likely_and_all_other_places_unlikely():
    document = make_document(4, 6)
    probabilities = make_probabilities(document, 0.7, 0.6)
    result = follow_author_headings(document.layout, probabilities)
    is_heading = find_author_headings(document.layout, probabilities)
    assert is_heading.sum() == 3  # the first one is no boundary
    assert result[is_heading].min() > 0.95
    assert result[~is_heading].max() < 0.05
    assert result[0] == 0


@pytest.mark.parametrize(
    ("headings", "sentences", "probability"),
    [(2, 6, 0.9), (4, 6, 0.2), (4, 4 * MAX_PART_ELEMENTS, 0.9)],
    ids=["a single boundary", "headings that the model does not believe", "few headings"],
)
def test_other_documents_keep_their_probabilities(headings, sentences, probability):
    document = make_document(headings, sentences)
    probabilities = make_probabilities(document, probability, 0.1)
    assert find_author_headings(document.layout, probabilities) is None
    assert follow_author_headings(document.layout, probabilities) is probabilities
