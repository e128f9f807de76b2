"""The words of a document as numbers: tokenised once, looked at by every feature.

Words are runs of letters, digits and apostrophes in lower case; characters of scripts that put no spaces between words
(Chinese, Japanese, Thai and their neighbours) are words each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neural.modules.late import late
from neural.tasks.cutting.stems import topic

_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_BETWEEN = "\x1e"
kernels = late("neural.tasks.cutting.kernels")
_TOKEN = re.compile(f"[{_SPACELESS}]|[^\\W_{_SPACELESS}]+(?:['’][^\\W_{_SPACELESS}]+)*|{_BETWEEN}")
_SPACED = re.compile(f"[^\\W_]+(?:['’][^\\W_]+)*|{_BETWEEN}")
"""The same for a text without such characters, a fifth quicker."""
_ANY_SPACELESS = re.compile(f"[{_SPACELESS}]")


@dataclass(frozen=True)
class Words:
    """All words of a document in their order."""

    vocabulary: tuple[str, ...]
    """The different words, in the order of their first use."""
    ids: np.ndarray
    """Every word's number in the vocabulary, int32."""
    starts: np.ndarray
    """Where each element's words begin in `ids`, and the end: one more than there are elements."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def counts(self) -> np.ndarray:
        """Words per element."""
        return np.diff(self.starts)

    @cached_property
    def owners(self) -> np.ndarray:
        """Which element each word stands in."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def stems(self) -> Words:
        """The same with every word's stem, and without the words that all texts share."""
        table: dict[str | None, int] = {None: -1}
        ids = self.each(lambda word: table.setdefault(topic(word), len(table) - 1))[self.ids].astype(np.int32)
        kept = ids >= 0
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        return Words(tuple(map(str, table))[1:], ids[kept], starts)

    @cached_property
    def rarity(self) -> np.ndarray:
        """A weight per word of the vocabulary: log(1 + elements / elements that have it)."""
        last = np.full(len(self.vocabulary), -1, dtype=np.int64)
        return np.log1p(len(self) / np.maximum(kernels.spread(self.ids, self.starts, last), 1))

    def each(self, about: Callable[[str], int]) -> np.ndarray:
        """A number per word of the vocabulary."""
        return np.fromiter(map(about, self.vocabulary), dtype=np.int64, count=len(self.vocabulary))

    def nth(self, place: int) -> np.ndarray:
        """The word at that place of each element (−1 is the last), −1 where there is none."""
        found = np.full(len(self), -1)
        there = self.counts > (place if place >= 0 else -place - 1)
        found[there] = self.ids[(self.starts[:-1] if place >= 0 else self.starts[1:])[there] + place]
        return found


def words_of(elements: Sequence[str]) -> Words:
    """The words of every element."""
    whole = _BETWEEN.join(elements)
    if whole.count(_BETWEEN) != len(elements) - 1:
        whole = _BETWEEN.join(one.replace(_BETWEEN, " ") for one in elements)
    whole = whole.lower()
    pattern = _TOKEN if _ANY_SPACELESS.search(whole) else _SPACED
    table: dict[str, int] = {_BETWEEN: 0}
    found = [table.setdefault(token, len(table)) for token in pattern.findall(whole)]
    ids = np.array(found, dtype=np.int32)
    ends = np.flatnonzero(ids == 0)
    starts = np.concatenate([[0], ends - np.arange(len(ends)), [len(ids) - len(ends)]])
    return Words(tuple(table)[1:], ids[ids != 0] - 1, starts)
