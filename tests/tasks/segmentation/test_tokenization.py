"""Tokenization: words, stems, stop words."""

from itertools import pairwise

import numpy as np
import pytest

from neural.tasks.segmentation.tokenization import stem_topic_word, stem_word, tokenize_elements


def list_words(elements):
    tokens = tokenize_elements(elements)
    return [
        [tokens.vocabulary[word] for word in tokens.ids[start:end]]
        for start, end in pairwise(tokens.starts)
    ]


def test_every_element_has_its_own_words():
    assert list_words(["The cat's mat", "", "—", "a_b 12"]) == [
        ["the", "cat's", "mat"],
        [],
        [],
        ["a", "b", "12"],
    ]


def test_scripts_without_spaces_are_split_into_characters():
    assert list_words(["Hello 世界!"]) == [["hello", "世", "界"]]


def test_the_separator_may_occur_in_an_element():
    assert list_words(["x\x1ey", "z"]) == [["x", "y"], ["z"]]


def test_positions_count_from_both_ends():
    tokens = tokenize_elements(["one two three", "", "four"])
    assert tokens.nth_token(0).tolist() == [0, -1, 3]
    assert tokens.nth_token(1).tolist() == [1, -1, -1]
    assert tokens.nth_token(-1).tolist() == [2, -1, 3]


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
def test_inflected_forms_have_one_stem(family):
    assert len({stem_word(word) for word in family.split()}) == 1


def test_stop_words_have_no_stem():
    assert (
        stem_topic_word("the") is None
        and stem_topic_word("don't") is None
        and stem_topic_word("engines") == stem_topic_word("engine") is not None
    )


def test_stems_leave_out_stop_words():
    stems = tokenize_elements(["The engines of the", "an engine"]).stems
    assert stems.ids.tolist() == [0, 0] and stems.starts.tolist() == [0, 1, 2]


def test_a_word_in_fewer_elements_has_a_larger_weight():
    tokens = tokenize_elements(["alpha beta beta", "alpha", "alpha"])
    np.testing.assert_allclose(tokens.idf, np.log1p([3 / 3, 3 / 1]))
