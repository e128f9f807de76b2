import numpy as np
import pytest

from neural.tasks.cutting.described import columns, features
from neural.tasks.cutting.document import Document


def column(elements, name):
    table = features(Document("some", tuple(elements)), ("openings",))
    return table[:, columns(("openings",)).index(f"openings.{name}")].tolist()


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("first_person", [0, 1, 0, 0]), ("early_adding", [0, 1, 0, 0]), ("any_adding", [0, 1, 0, 1]),
        ("first_contrast", [0, 0, 1, 0]), ("any_beginning", [1, 0, 0, 0]), ("any_year", [1, 0, 0, 1]),
        ("any_number", [0, 0, 1, 0]),
    ],
)  # fmt: skip
def test_a_word_is_marked_where_it_stands(name, marked):
    elements = [
        "Brahms was born in Hamburg in 1833.", "He also played.", "However, 12 pieces are lost.",
        "The concert that Vienna had been waiting for was given in 1871, and so was another.",
    ]
    assert column(elements, name) == marked


def test_the_subject_is_what_most_elements_name():
    elements = ["Brahms plays.", "Brahms writes.", "It is late.", "Brahms sleeps."]
    assert np.argmin(column(elements, "subject")) == 2


def test_years_that_go_back_are_seen_before_the_element_that_names_the_earlier():
    elements = ["In 1990 it ended.", "Nobody knew.", "It had begun in 1950.", "By 1960 it grew."]
    assert column(elements, "year_back") == [0, 1, 1, 0]
    step = column(elements, "year_step")
    assert step[1] == pytest.approx(-np.log1p(40), rel=1e-6)
    assert step[0] == 0                      # nothing before
    assert step[3] == pytest.approx(np.log1p(10), rel=1e-6)


def test_documents_without_words_are_zeros():
    assert not features(Document("none", ("", "—")), ("openings",)).any()
