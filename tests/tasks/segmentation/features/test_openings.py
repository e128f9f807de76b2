"""Openings: word groups, subjects, years."""

import numpy as np
import pytest

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features, list_columns


def compute_column(elements, name):
    table = compute_features(SegmentationDocument("some", tuple(elements)), ("openings",))
    return table[:, list_columns(("openings",)).index(f"openings.{name}")].tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("first_person", [0, 1, 0, 0]),
        ("early_adding", [0, 1, 0, 0]),
        ("any_adding", [0, 1, 0, 1]),
        ("first_contrast", [0, 0, 1, 0]),
        ("any_beginning", [1, 0, 0, 0]),
        ("any_year", [1, 0, 0, 1]),
        ("any_number", [0, 0, 1, 0]),
    ],
)
def test_a_word_group_is_marked_at_its_elements(name, expected):
    elements = [
        "Brahms was born in Hamburg in 1833.",
        "He also played.",
        "However, 12 pieces are lost.",
        "The concert that Vienna had been waiting for was given in 1871, and so was another.",
    ]
    assert compute_column(elements, name) == expected


def test_the_subject_is_in_most_elements():
    elements = ["Brahms plays.", "Brahms writes.", "It is late.", "Brahms sleeps."]
    assert np.argmin(compute_column(elements, "subject")) == 2


def test_a_step_back_in_years_is_marked_at_the_gaps_between():
    elements = ["In 1990 it ended.", "Nobody knew.", "It had begun in 1950.", "By 1960 it grew."]
    assert compute_column(elements, "year_back") == [0, 1, 1, 0]
    step = compute_column(elements, "year_step")
    assert step[1] == pytest.approx(-np.log1p(40), rel=1e-6)
    assert step[0] == 0  # no year before
    assert step[3] == pytest.approx(np.log1p(10), rel=1e-6)


def test_documents_without_words_are_zeros():
    assert not compute_features(SegmentationDocument("none", ("", "—")), ("openings",)).any()
