"""Witten–Bell smoothing by hand."""

import math

import pytest

from neural.findings.text_statistics import NGramModel


def test_probabilities_are_those_computed_by_hand():
    model = NGramModel("abab", order=2)
    assert model.alphabet_size == 3  # a, b and all other characters
    # empty context: 2 a, 2 b, 2 kinds → (2 + 2 · 1/3) / (4 + 2)
    assert model.probability("a", "") == pytest.approx(4 / 9)
    assert model.probability("?", "") == pytest.approx(1 / 9)
    # after a: 2 b, 1 kind → (2 + 4/9) / 3 and (0 + 4/9) / 3
    assert model.probability("b", "a") == pytest.approx(22 / 27)
    assert model.probability("a", "a") == pytest.approx(4 / 27)
    # after b: 1 a, 1 kind; the last b has nothing after it
    assert model.probability("a", "b") == pytest.approx(13 / 18)


def test_bits_are_the_mean_negative_log_probability():
    expected = -(math.log2(4 / 9) + math.log2(22 / 27) + math.log2(13 / 18)) / 3
    assert NGramModel("abab", order=2).bits_per_character("aba") == pytest.approx(expected)


def test_only_the_last_characters_of_a_context_count():
    model = NGramModel("abcabd", order=3)
    assert model.probability("c", "zzzab") == model.probability("c", "ab")
    assert model.probability("c", "ab") != model.probability("c", "b")


def test_an_unknown_context_backs_off_to_the_shorter_one():
    model = NGramModel("abcabd", order=3)
    assert model.probability("c", "?b") == model.probability("c", "b")
    assert model.probability("c", "b?") == model.probability("c", "")


@pytest.mark.parametrize("context", ["", "a", "ab", "th", "zz", "he "])
def test_probabilities_sum_to_one_with_one_share_for_all_unseen_characters(context):
    text = "the cat sat on the mat and the rat had that hat"
    model = NGramModel(text, order=4)
    assert sum(
        model.probability(character, context) for character in {*text, "?"}
    ) == pytest.approx(1)


def test_text_of_the_same_language_has_fewer_bits_than_noise():
    model = NGramModel("the cat sat on the mat. " * 3)
    assert (
        model.bits_per_character("the mat sat on the cat")
        < 2
        < model.bits_per_character("xqzjvkwpy")
        < math.log2(10_000)
    )


def test_an_empty_text_is_refused_and_an_empty_sample_is_nan():
    with pytest.raises(ValueError, match="no text"):
        NGramModel("")
    assert math.isnan(NGramModel("a").bits_per_character(""))
