"""How elements look, and how they were set out."""

import numpy as np

from neural.tasks.cutting.described import columns, features
from neural.tasks.cutting.document import Document


def table(document, name):
    return dict(zip((one.partition(".")[2] for one in columns(name)), features(document, [name]).T, strict=True))


def test_shares_are_of_an_elements_own_characters():
    found = table(Document("x", ("ABcd", "", "12 3!", "éß")), "shape")
    np.testing.assert_allclose(found["capitals"], [0.5, 0, 0, 0])
    np.testing.assert_allclose(found["digits"], [0, 0, 0.6, 0])
    np.testing.assert_allclose(found["marks"], [0, 0, 0.2, 0], atol=1e-7)


def test_first_words_and_last_characters_are_told():
    found = table(Document("x", ("However, it is so.", "She left?", "In May:", "what")), "shape")
    assert found["goes_on"].tolist() == [1, 0, 0, 0]
    assert found["points_back"].tolist() == [0, 1, 0, 0]
    assert found["sets_out"].tolist() == [0, 0, 1, 0]
    assert found["asks"].tolist() == [0, 0, 0, 1]
    assert found["ends_stop"].tolist() == [1, 0, 0, 0]
    assert found["ends_question"].tolist() == [0, 1, 0, 0]
    assert found["ends_colon"].tolist() == [0, 0, 1, 0]
    assert found["small_letter"].tolist() == [0, 0, 0, 1]


def test_places_run_from_the_first_to_the_last():
    found = table(Document("x", ("a", "b", "c")), "shape")
    np.testing.assert_allclose(found["place"], [0, 0.5, 1])
    np.testing.assert_allclose(found["from_start"], np.log1p([0, 1, 2]), rtol=1e-6)
    np.testing.assert_allclose(found["to_end"], np.log1p([2, 1, 0]), rtol=1e-6)


def test_a_heading_is_seen_by_the_element_after_it():
    found = table(Document("x", ("# Title", "It goes on and on.")), "shape")
    assert found["heading"].tolist() == [1, 0] and found["heading_before"].tolist() == [0, 1]


def test_the_layout_of_a_text_is_told():
    found = table(Document.of("One. Two.\n\n\n    - Three.\n\fFour."), "layout")
    assert found["known"].tolist() == [1, 1, 1, 1]
    assert found["new_line"].tolist() == [1, 0, 1, 1]
    assert found["blank_lines"].tolist() == [0, 0, 2, 1]   # a new page is as good as a blank line
    assert found["new_page"].tolist() == [0, 0, 0, 1]
    assert found["item"].tolist() == [0, 0, 1, 0]
    np.testing.assert_allclose(found["indentation"], [0, 0, np.log1p(4), 0], rtol=1e-6)


def test_the_layout_of_read_data_is_not_known():
    assert not features(Document("x", ("One.", "Two.")), ["layout"]).any()
