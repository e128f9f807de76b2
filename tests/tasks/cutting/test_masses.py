"""Where parts begin and how long they are say the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.tasks.cutting.masses import boundaries_of, checked, checked_pair, in_words, label_changes, masses
from tests.tasks.cutting.segmentations import quickly


def test_parts_of_two_and_three_elements_begin_at_the_third():
    assert boundaries_of([2, 3]).tolist() == [False, False, True, False, False]


@quickly
@given(st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_masses_become_boundaries_and_come_back(lengths):
    assert masses(boundaries_of(lengths)) == lengths


def test_what_stands_at_the_first_element_does_not_count():
    given = np.array([True, False, True])
    assert masses(given) == [2, 1]
    assert given[0], "the caller's array stays as it was"


def test_ones_and_zeros_are_boundaries_too():
    assert checked([1, 0, 1]).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [([], "at least one element"), ([[True]], "one value per element"), ([0.2, 0.9], "decoded"), ([0, 2], "True or")],
)
def test_what_is_no_segmentation_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        checked(wrong)


def test_segmentations_of_different_documents_are_not_compared():
    with pytest.raises(ValueError, match="the truth has 3 elements, the prediction 4"):
        checked_pair([0, 1, 0], [0, 1, 0, 0])


@pytest.mark.parametrize("wrong", [[], [0], [2, -1], [1.5]])
def test_parts_have_elements(wrong):
    with pytest.raises(ValueError, match="each of one element or more"):
        boundaries_of(wrong)


def test_a_part_begins_where_the_label_changes():
    assert label_changes([3, 3, 1, 1, 3]).tolist() == [False, False, True, False, True]
    assert label_changes([7]).tolist() == [False]
    with pytest.raises(ValueError, match="at least one"):
        label_changes([])


def test_words_take_the_place_of_elements():
    assert masses(in_words(boundaries_of([2, 1]), [3, 2, 4])) == [5, 4]
    assert masses(in_words(boundaries_of([1, 1]), [0, 4])) == [1, 4]
    assert masses(in_words([0], [6])) == [6]
    with pytest.raises(ValueError, match="2 elements, but 3"):
        in_words([0, 1], [1, 2, 3])
