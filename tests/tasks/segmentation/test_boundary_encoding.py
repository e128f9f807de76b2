"""Encodings of a segmentation: boundaries, lengths and labels convert into each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.tasks.segmentation.boundary_encoding import (
    boundaries_to_lengths,
    boundaries_to_words,
    check_boundaries,
    check_pair,
    labels_to_boundaries,
    lengths_to_boundaries,
)
from tests.tasks.segmentation.segmentations import quick_settings


def test_segments_of_two_and_three_elements_have_a_boundary_at_the_third():
    assert lengths_to_boundaries([2, 3]).tolist() == [False, False, True, False, False]


@quick_settings
@given(st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_lengths_round_trip_through_boundaries(lengths):
    assert boundaries_to_lengths(lengths_to_boundaries(lengths)) == lengths


def test_the_first_element_does_not_count():
    boundaries = np.array([True, False, True])
    assert boundaries_to_lengths(boundaries) == [2, 1]
    assert boundaries[0], "the caller's array is not changed"


def test_ones_and_zeros_are_boundaries_too():
    assert check_boundaries([1, 0, 1]).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "at least one element"),
        ([[True]], "one value per element"),
        ([0.2, 0.9], "decode probabilities first"),
        ([0, 2], "True or"),
    ],
)
def test_invalid_boundaries_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        check_boundaries(values)


def test_segmentations_of_different_documents_are_not_compared():
    with pytest.raises(ValueError, match="the truth has 3 elements, the prediction 4"):
        check_pair([0, 1, 0], [0, 1, 0, 0])


@pytest.mark.parametrize("lengths", [[], [0], [2, -1], [1.5]])
def test_invalid_lengths_are_refused(lengths):
    with pytest.raises(ValueError, match="each of one element or more"):
        lengths_to_boundaries(lengths)


def test_a_segment_begins_where_the_label_changes():
    assert labels_to_boundaries([3, 3, 1, 1, 3]).tolist() == [False, False, True, False, True]
    assert labels_to_boundaries([7]).tolist() == [False]
    with pytest.raises(ValueError, match="at least one"):
        labels_to_boundaries([])


def test_boundaries_of_elements_become_boundaries_of_words():
    words = boundaries_to_words(lengths_to_boundaries([2, 1]), [3, 2, 4])
    assert boundaries_to_lengths(words) == [5, 4]
    words = boundaries_to_words(lengths_to_boundaries([1, 1]), [0, 4])
    assert boundaries_to_lengths(words) == [1, 4]
    assert boundaries_to_lengths(boundaries_to_words([0], [6])) == [6]
    with pytest.raises(ValueError, match="2 elements, but 3"):
        boundaries_to_words([0, 1], [1, 2, 3])
