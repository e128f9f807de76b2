"""Tokenization: words and stems of a document as integer arrays, shared by all features.

An element is a sentence or line of a document. Words are runs of letters, digits and apostrophes in
lower case. In scripts without spaces between words (Chinese, Japanese, Thai and others) every
character is a word. A stem is a word without its suffix; stop words have no stem. A token is one
occurrence of a word or stem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


def find_word_distances(tokens: ElementTokens) -> tuple[np.ndarray, np.ndarray]:
    """Distances of every token to the previous and to the next use of its word, (tokens,) each.

    Distances are in elements: 0 for a repetition within one element. If the word is not used
    before (or after), the distance is twice the number of elements, more than any real distance.
    """
    no_use_distance = 2 * len(tokens)
    order = np.argsort(tokens.ids, kind="stable")
    ids, element_ids = tokens.ids[order], tokens.element_ids[order]
    distances = np.where(ids[1:] == ids[:-1], element_ids[1:] - element_ids[:-1], no_use_distance)
    back, ahead = np.full(len(ids), no_use_distance), np.full(len(ids), no_use_distance)
    back[order[1:]] = distances
    ahead[order[:-1]] = distances
    return back, ahead


# (suffix, replacement); the first suffix that matches is replaced.
_SUFFIX_RULES = (
    ("ization", "ize"),
    ("isation", "ise"),
    ("fulness", "ful"),
    ("iveness", "ive"),
    ("ational", ""),
    ("ations", ""),
    ("ation", ""),
    ("ements", "e"),
    ("ingly", ""),
    ("ement", "e"),
    ("edly", ""),
    ("ness", ""),
    ("ings", ""),
    ("ally", "al"),
    ("ities", "ity"),
    ("ing", ""),
    ("ies", "y"),
    ("ied", "y"),
    ("ers", ""),
    ("est", ""),
    ("ed", ""),
    ("ly", ""),
    ("er", ""),
    ("es", ""),
    ("'s", ""),
    ("’s", ""),
    ("s", ""),
)
_MIN_STEM_LETTERS = 3
"""Minimum number of letters of a stem; a suffix that leaves fewer is not removed."""
# For speed: only the rules whose suffix ends with the last letter of a word are tried.
_RULES_BY_LAST_LETTER = {
    last_letter: tuple(rule for rule in _SUFFIX_RULES if rule[0][-1] == last_letter)
    for last_letter in {suffix[-1] for suffix, _ in _SUFFIX_RULES}
}


def stem_word(word: str) -> str:
    """The word without its suffix, by a short list of English suffix rules."""
    if len(word) <= _MIN_STEM_LETTERS or word.endswith("ss"):
        return word
    for suffix, replacement in _RULES_BY_LAST_LETTER.get(word[-1], ()):
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM_LETTERS:
            word = word[: -len(suffix)] + replacement
            break
    if len(word) > _MIN_STEM_LETTERS and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]  # stopp(ed) → stop
    # Without its final "e", "love" has the same stem as "lov(ing)".
    return word[:-1] if len(word) > _MIN_STEM_LETTERS and word[-1] == "e" else word


def stem_topic_word(word: str) -> str | None:
    """The stem of a word; None for a stop word."""
    base = word.partition("'")[0].partition("’")[0]
    return None if base in STOP_WORDS else stem_word(word)


_STOP_WORD_LIST = """
    a about above after again against ago all almost along already also although always am among an
    and another any anybody anyone anything anywhere are around as at away back be became because
    become becomes been before behind being below beside between beyond both but by came can cannot
    could did do does doing done down during each either else enough even ever every everybody
    everyone everything everywhere except few for from further get gets getting give given go goes
    going gone got had has have having he her here hers herself him himself his how however i if in
    indeed instead into is it its itself just keep kept last least less let like likely made make
    makes making many may maybe me might mine more moreover most much must my myself near nearly
    neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once
    one only onto or other others otherwise ought our ours ourselves out over own per perhaps put
    quite rather really said same saw say says see seem seemed seems seen several shall she should
    since so some somebody someone something sometimes somewhere soon still such take taken takes
    than that the their theirs them themselves then there therefore these they thing things this
    those though three through throughout thus to together too took toward towards two under unless
    until up upon us use used uses using very was way we well went were what whatever when whenever
    where whereas wherever whether which while who whoever whole whom whose why will with within
    without would yes yet you your yours yourself yourselves
    aren couldn d didn doesn don hadn hasn haven isn ll m re s shouldn t ve wasn weren won wouldn
"""
STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
"""English stop words in lower case. The last ones are fragments of "he'll", "it's", "wouldn't"."""


# Ranges of characters of scripts without spaces between words, for a regex character class.
_SPACELESS_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_ELEMENT_SEPARATOR = "\x1e"  # the ASCII record separator
_TOKEN_PATTERN = re.compile(
    f"[{_SPACELESS_SCRIPTS}]"
    f"|[^\\W_{_SPACELESS_SCRIPTS}]+(?:['’][^\\W_{_SPACELESS_SCRIPTS}]+)*"
    f"|{_ELEMENT_SEPARATOR}"
)
_SPACED_TOKEN_PATTERN = re.compile(f"[^\\W_]+(?:['’][^\\W_]+)*|{_ELEMENT_SEPARATOR}")
"""Like `_TOKEN_PATTERN`, for texts without these scripts; it is 20 % faster."""
_SPACELESS_PATTERN = re.compile(f"[{_SPACELESS_SCRIPTS}]")


@dataclass(frozen=True)
class ElementTokens:
    """All words of a document, in order."""

    vocabulary: tuple[str, ...]
    """The distinct words, in order of first use."""
    ids: np.ndarray
    """Vocabulary index of every token, int32."""
    starts: np.ndarray
    """Start of each element's tokens in `ids`, then the number of tokens: (elements + 1,)."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of tokens per element."""
        return np.diff(self.starts)

    @cached_property
    def element_ids(self) -> np.ndarray:
        """Element index of each token."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def stems(self) -> ElementTokens:
        """The same tokens as stems, without stop words."""
        # Id of each stem, from 0; the entry None: −1 marks stop words, hence `len(…) - 1` below.
        stem_ids: dict[str | None, int] = {None: -1}
        ids = self.map_vocabulary(
            lambda word: stem_ids.setdefault(stem_topic_word(word), len(stem_ids) - 1)
        )[self.ids].astype(np.int32)
        is_stem = ids >= 0
        starts = np.concatenate([[0], np.cumsum(is_stem)])[self.starts]
        return ElementTokens(tuple(map(str, stem_ids))[1:], ids[is_stem], starts)

    @cached_property
    def idf(self) -> np.ndarray:
        """Inverse element frequency of each word, (vocabulary,).

        It is log(1 + number of elements / number of elements that contain the word).
        """
        # Imported here, because kernels.py imports numba.
        from neural.tasks.segmentation.kernels import count_element_frequency

        last = np.full(len(self.vocabulary), -1, dtype=np.int64)
        return np.log1p(
            len(self) / np.maximum(count_element_frequency(self.ids, self.starts, last), 1)
        )

    def map_vocabulary(self, function: Callable[[str], int]) -> np.ndarray:
        """Result of `function` for every word of the vocabulary, (vocabulary,), int64."""
        return np.fromiter(
            map(function, self.vocabulary), dtype=np.int64, count=len(self.vocabulary)
        )

    def nth_token(self, position: int) -> np.ndarray:
        """Id of the word at `position` of each element, (elements,); −1 if there is none.

        Positions count from 0; negative ones count from the end, as in a list.
        """
        ids = np.full(len(self), -1)
        exists = self.counts > (position if position >= 0 else -position - 1)
        ids[exists] = self.ids[
            (self.starts[:-1] if position >= 0 else self.starts[1:])[exists] + position
        ]
        return ids


def tokenize_elements(elements: Sequence[str]) -> ElementTokens:
    """Tokenize all elements in one pass.

    The elements are joined by a separator, which is a token with id 0. At the end the separators
    are removed and all other ids decrease by 1.
    """
    text = _ELEMENT_SEPARATOR.join(elements)
    # An element contains the separator itself: replace it there.
    if text.count(_ELEMENT_SEPARATOR) != len(elements) - 1:
        text = _ELEMENT_SEPARATOR.join(
            element.replace(_ELEMENT_SEPARATOR, " ") for element in elements
        )
    text = text.lower()
    pattern = _TOKEN_PATTERN if _SPACELESS_PATTERN.search(text) else _SPACED_TOKEN_PATTERN
    token_ids: dict[str, int] = {_ELEMENT_SEPARATOR: 0}
    ids = np.array(
        [token_ids.setdefault(token, len(token_ids)) for token in pattern.findall(text)],
        dtype=np.int32,
    )
    separators = np.flatnonzero(ids == 0)
    # Index of the first token of each element, counted without the separators.
    starts = np.concatenate(
        [[0], separators - np.arange(len(separators)), [len(ids) - len(separators)]]
    )
    return ElementTokens(tuple(token_ids)[1:], ids[ids != 0] - 1, starts)
