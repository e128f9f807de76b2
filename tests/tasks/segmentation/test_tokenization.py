"""Tokenization: words, stems, stop words."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.native.library import available_levels, force_level, no_kernels
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


@pytest.mark.skipif(not available_levels(), reason="the native library is not built")
@pytest.mark.parametrize("level", available_levels())
@settings(max_examples=100, deadline=None)
@given(
    elements=st.lists(
        st.text(
            st.one_of(st.characters(), st.sampled_from("aZ09'’_ \x1eéİΣß世กー़-.")), max_size=30
        ),
        min_size=1,
        max_size=8,
    )
)
def test_native_tokens_equal_those_of_the_regular_expression(level, elements):
    with no_kernels():
        expected = tokenize_elements(elements)
    with force_level(level):
        tokens = tokenize_elements(elements)
    assert tokens.vocabulary == expected.vocabulary
    np.testing.assert_array_equal(tokens.ids, expected.ids)
    np.testing.assert_array_equal(tokens.starts, expected.starts)


@pytest.mark.skipif(not available_levels(), reason="the native library is not built")
def test_a_large_vocabulary_keeps_its_order():
    words = [f"{number:x}w{number % 7}" * (1 + number % 3) for number in range(30_000)]
    tokens = tokenize_elements([" ".join(words), " ".join(reversed(words))])
    assert tokens.vocabulary == tuple(words)
    assert tokens.ids.tolist() == [*range(30_000), *reversed(range(30_000))]


def test_lone_surrogates_are_no_letters():
    assert list_words(["a\ud800b"]) == [["a", "b"]]
