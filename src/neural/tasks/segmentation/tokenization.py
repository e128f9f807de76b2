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
from functools import cached_property, lru_cache

import numpy as np

from neural.native.library import NativeFunction, native_available
from neural.tasks.segmentation.character_classes import SPACELESS_SCRIPTS, classify_characters
from neural.tasks.segmentation.kernels import (
    find_distinct_words,
    find_word_distances,
    replace_words,
)

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


@lru_cache(maxsize=1 << 16)  # the blocks of a long text share most of their words
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


_ELEMENT_SEPARATOR = "\x1e"  # the ASCII record separator; tokenization.cpp has the same
_TOKEN_PATTERN = re.compile(
    f"[{SPACELESS_SCRIPTS}]"
    f"|[^\\W_{SPACELESS_SCRIPTS}]+(?:['’][^\\W_{SPACELESS_SCRIPTS}]+)*"
    f"|{_ELEMENT_SEPARATOR}"
)
_tokenize = NativeFunction("tokenize", "pip pp pp p")


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
        new_ids = self.map_vocabulary(
            lambda word: stem_ids.setdefault(stem_topic_word(word), len(stem_ids) - 1)
        )
        ids, starts = replace_words(self.ids, self.starts, new_ids.astype(np.int32))
        return ElementTokens(tuple(map(str, stem_ids))[1:], ids, starts)

    @property
    def stop_word_share(self) -> float:
        """Share of the tokens that are English stop words."""
        is_stop_word = self.map_vocabulary(lambda word: stem_topic_word(word) is None)
        return float(is_stop_word[self.ids].mean()) if len(self.ids) else 0.0

    @cached_property
    def distinct(self) -> DistinctTokens:
        """Each word of an element once."""
        return DistinctTokens(
            *find_distinct_words(self.ids, self.starts, len(self.vocabulary)), self.vocabulary
        )

    @cached_property
    def word_distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances of every token to the previous and to the next use of its word, in elements.

        If the word is not used before (or after), the distance is twice the number of elements.
        """
        return find_word_distances(self.ids, self.starts, len(self.vocabulary))

    @cached_property
    def idf(self) -> np.ndarray:
        """Inverse element frequency of each word, (vocabulary,).

        It is log(1 + number of elements / number of elements that contain the word).
        """
        return np.log1p(len(self) / np.maximum(self.distinct.element_frequency, 1))

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


@dataclass(frozen=True)
class DistinctTokens:
    """The distinct words of every element, in order of first use."""

    ids: np.ndarray
    """Vocabulary index of every word, int32."""
    counts: np.ndarray
    """How often the element uses each of these words, int32."""
    starts: np.ndarray
    """Start of each element's words in `ids`, then their number: (elements + 1,)."""
    vocabulary: tuple[str, ...]

    @property
    def element_frequency(self) -> np.ndarray:
        """Number of elements that contain each word, (vocabulary,)."""
        return np.bincount(self.ids, minlength=len(self.vocabulary))

    def reverse(self) -> DistinctTokens:
        """The same words with the elements in reverse order."""
        return DistinctTokens(
            self.ids[::-1].copy(),
            self.counts[::-1].copy(),
            self.starts[-1] - self.starts[::-1],
            self.vocabulary,
        )


def tokenize_elements(elements: Sequence[str]) -> ElementTokens:
    """Tokenize all elements in one pass over their text, joined by separators."""
    # Lower case element by element: most elements are ASCII, for which Python is much faster.
    lower = list(map(str.lower, elements))
    text = _ELEMENT_SEPARATOR.join(lower)
    # An element contains the separator itself: replace it there.
    if text.count(_ELEMENT_SEPARATOR) != len(elements) - 1:
        text = _ELEMENT_SEPARATOR.join(
            element.replace(_ELEMENT_SEPARATOR, " ") for element in lower
        )
    if native_available():
        return _tokenize_natively(text.encode("utf-8", "surrogatepass"))
    return _tokenize_with_regex(text)


def _tokenize_with_regex(text: str) -> ElementTokens:
    """Tokens of elements joined by separators, in plain Python.

    A separator is a token with id 0. At the end the separators are removed and all other ids
    decrease by 1.
    """
    token_ids: dict[str, int] = {_ELEMENT_SEPARATOR: 0}
    ids = np.array(
        [token_ids.setdefault(token, len(token_ids)) for token in _TOKEN_PATTERN.findall(text)],
        dtype=np.int32,
    )
    separators = np.flatnonzero(ids == 0)
    # Index of the first token of each element, counted without the separators.
    starts = np.concatenate(
        [[0], separators - np.arange(len(separators)), [len(ids) - len(separators)]]
    )
    return ElementTokens(tuple(token_ids)[1:], ids[ids != 0] - 1, starts)


def _tokenize_natively(text: bytes) -> ElementTokens:
    """Like `_tokenize_with_regex`, by the native kernel; `text` is UTF-8."""
    # The system provides memory for the used part of these arrays only.
    max_words = len(text) // 2 + 1
    ids = np.empty(max_words, np.int32)
    begins, ends = np.empty((2, max_words), np.int64)
    starts = np.empty(text.count(_ELEMENT_SEPARATOR.encode()) + 2, np.int64)
    sizes = np.empty(3, np.int64)
    characters = np.frombuffer(text, np.uint8)
    _tokenize(
        characters.ctypes.data,
        len(text),
        classify_characters(characters).ctypes.data,
        ids.ctypes.data,
        starts.ctypes.data,
        begins.ctypes.data,
        ends.ctypes.data,
        sizes.ctypes.data,
    )
    word_count, _, vocabulary_size = sizes.tolist()
    if word_count < 0:
        raise MemoryError("tokenization")
    spans = zip(begins[:vocabulary_size].tolist(), ends[:vocabulary_size].tolist(), strict=True)
    vocabulary = tuple(text[begin:end].decode() for begin, end in spans)
    return ElementTokens(vocabulary, ids[:word_count].copy(), starts)
