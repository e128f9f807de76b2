"""Words as numbers."""

from itertools import pairwise

import numpy as np
import pytest

from neural.tasks.cutting.stems import stem, topic
from neural.tasks.cutting.words import words_of


def lists(elements):
    words = words_of(elements)
    return [[words.vocabulary[one] for one in words.ids[a:b]] for a, b in pairwise(words.starts)]


def test_every_element_has_its_own_words():
    assert lists(["The cat's mat", "", "—", "a_b 12"]) == [["the", "cat's", "mat"], [], [], ["a", "b", "12"]]


def test_scripts_without_spaces_are_read_by_character():
    assert lists(["Hello 世界!"]) == [["hello", "世", "界"]]


def test_the_mark_between_elements_may_stand_in_one():
    assert lists(["x\x1ey", "z"]) == [["x", "y"], ["z"]]


def test_places_are_counted_from_both_ends():
    words = words_of(["one two three", "", "four"])
    assert words.nth(0).tolist() == [0, -1, 3]
    assert words.nth(1).tolist() == [1, -1, -1]
    assert words.nth(-1).tolist() == [2, -1, 3]


@pytest.mark.parametrize(
    "family",
    [
        "segment segments segmented segmenting segmentation",
        "love loved loving loves",
        "stop stopped stopping",
        "city cities",
        "study studies studied",
        "box boxes",
        "run running runs",
    ],
)
def test_words_of_a_family_meet(family):
    assert len({stem(word) for word in family.split()}) == 1


def test_common_words_carry_no_topic():
    assert topic("the") is None and topic("don't") is None and topic("engines") == topic("engine") is not None


def test_stems_leave_common_words_out():
    stems = words_of(["The engines of the", "an engine"]).stems
    assert stems.ids.tolist() == [0, 0] and stems.starts.tolist() == [0, 1, 2]


def test_a_word_in_fewer_elements_weighs_more():
    words = words_of(["alpha beta beta", "alpha", "alpha"])
    np.testing.assert_allclose(words.rarity, np.log1p([3 / 3, 3 / 1]))
