"""Self-similarity as everybody writes it first, a loop over all pairs: the definition of what the features compute."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from neural.tasks.cutting.rhymes import endings
from neural.tasks.cutting.tags import tag
from neural.tasks.cutting.words import words_of

Prepare = Callable[[list[str]], Any]
"""What is looked at of an element, once."""
Pair = Callable[[Any, Any], float]
"""How alike two elements are."""


def two(one: list[str], other: list[str]) -> float:
    """The first is the same, and both are."""
    return 0.5 * (one[0] == other[0]) + 0.5 * (one == other) if one and other else 0.0


def sounds(one: tuple[str, str] | None, other: tuple[str, str] | None) -> float:
    """The last syllable is the same, and all from the stress on."""
    return 0.5 * (one[0] == other[0]) + 0.5 * (one[1] == other[1]) if one and other else 0.0


def cosine(one: Counter[object], other: Counter[object]) -> float:
    """Of counts."""
    product = sum(count * other[kind] for kind, count in one.items())
    return product / math.sqrt(_square(one) * _square(other)) if one and other else 0.0


def jaccard(one: set[str], other: set[str]) -> float:
    """Shared words in all words."""
    return len(one & other) / max(1, len(one | other))


def kinds(words: list[str]) -> Counter[object]:
    """Kinds of words, and pairs that follow each other."""
    tags = [tag(word) for word in words]
    return Counter([*tags, *pairwise(tags)])


MATRICES: dict[str, tuple[Prepare, Pair]] = {
    "first_words": (lambda words: words[:2], two),
    "last_words": (lambda words: words[:-3:-1], two),
    "rhyme": (lambda words: endings(words[-1]) if words else None, sounds),
    "part_of_speech": (kinds, cosine),
    "word_overlap": (set, jaccard),
}


def by_loops(elements: Sequence[str], names: Sequence[str] = tuple(MATRICES)) -> list[list[float]]:
    """A row per element: twelve statistics of every matrix."""
    words = words_of(elements)
    edges = zip(words.starts[:-1], words.starts[1:], strict=True)
    lists = [[words.vocabulary[word] for word in words.ids[a:b]] for a, b in edges]
    rows: list[list[float]] = [[] for _ in elements]
    for prepare, pair in (MATRICES[name] for name in names):
        ready = [prepare(one) for one in lists]
        for at, one in enumerate(ready):
            rows[at] += statistics([pair(one, other) for other in ready], at)
    return rows


def statistics(row: list[float], at: int) -> list[float]:
    """Mean, maximum, deviation, quartile, tenth, share, previous, next, first, last, lean, match."""
    count = len(row)
    if count == 1:
        return [0.0] * 12
    others = row[:at] + row[at + 1 :]
    mean = sum(others) / len(others)
    ordered = sorted(others, reverse=True)
    best = ordered[0]
    before, after = row[max(0, at - 4) : at], row[at + 1 : at + 5]
    match = next(place for place, value in enumerate(row) if place != at and value == best) if best > 0 else at
    return [
        mean,
        best,
        math.sqrt(sum((value - mean) ** 2 for value in others) / len(others)),
        ordered[math.ceil(len(others) / 4) - 1],
        ordered[math.ceil(len(others) / 10) - 1],
        sum(value >= 0.5 for value in others) / len(others),
        row[at - 1] if at else 0.0,
        row[at + 1] if at + 1 < count else 0.0,
        row[0] if at else 1.0,
        row[-1] if at + 1 < count else 1.0,
        sum(after) / max(1, len(after)) - sum(before) / max(1, len(before)),
        match / (count - 1),
    ]


def _square(counts: Counter[object]) -> int:
    return sum(count * count for count in counts.values())
