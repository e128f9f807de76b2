"""Surface features."""

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features, list_columns


def compute_columns(document, name):
    names = (column.partition(".")[2] for column in list_columns(name))
    return dict(zip(names, compute_features(document, [name]).T, strict=True))


def test_character_shares_are_per_element():
    columns = compute_columns(SegmentationDocument("x", ("ABcd", "", "12 3!", "éß")), "shape")
    np.testing.assert_allclose(columns["capitals"], [0.5, 0, 0, 0])
    np.testing.assert_allclose(columns["digits"], [0, 0, 0.6, 0])
    np.testing.assert_allclose(columns["marks"], [0, 0, 0.2, 0], atol=1e-7)


def test_first_words_and_last_characters_are_marked():
    columns = compute_columns(
        SegmentationDocument("x", ("However, it is so.", "She left?", "In May:", "what")), "shape"
    )
    assert columns["goes_on"].tolist() == [1, 0, 0, 0]
    assert columns["points_back"].tolist() == [0, 1, 0, 0]
    assert columns["sets_out"].tolist() == [0, 0, 1, 0]
    assert columns["asks"].tolist() == [0, 0, 0, 1]
    assert columns["ends_stop"].tolist() == [1, 0, 0, 0]
    assert columns["ends_question"].tolist() == [0, 1, 0, 0]
    assert columns["ends_colon"].tolist() == [0, 0, 1, 0]
    assert columns["small_letter"].tolist() == [0, 0, 0, 1]


def test_positions_run_from_the_first_to_the_last():
    columns = compute_columns(SegmentationDocument("x", ("a", "b", "c")), "shape")
    np.testing.assert_allclose(columns["place"], [0, 0.5, 1])
    np.testing.assert_allclose(columns["from_start"], np.log1p([0, 1, 2]), rtol=1e-6)
    np.testing.assert_allclose(columns["to_end"], np.log1p([2, 1, 0]), rtol=1e-6)


def test_a_heading_is_marked_at_the_next_element():
    columns = compute_columns(SegmentationDocument("x", ("# Title", "It goes on and on.")), "shape")
    assert columns["heading"].tolist() == [1, 0] and columns["heading_before"].tolist() == [0, 1]
