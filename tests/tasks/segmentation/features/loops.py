"""Reference implementation of the self-similarity features: loops over all pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from neural.tasks.segmentation.features.part_of_speech import tag_word
from neural.tasks.segmentation.features.rhyme import find_rhyme_sounds
from neural.tasks.segmentation.tokenization import tokenize_elements

Prepare = Callable[[list[str]], Any]
"""Words of an element → what is compared."""
Pair = Callable[[Any, Any], float]
"""Similarity of two elements."""


def compare_words(a: list[str], b: list[str]) -> float:
    """0.5 for an equal first word, 1 if both words are equal."""
    return 0.5 * (a[0] == b[0]) + 0.5 * (a == b) if a and b else 0.0


def compare_sounds(a: tuple[str, str] | None, b: tuple[str, str] | None) -> float:
    """0.5 for an equal last syllable, 1 if the sound is equal from the stress on."""
    return 0.5 * (a[0] == b[0]) + 0.5 * (a[1] == b[1]) if a and b else 0.0


def cosine(a: Counter[object], b: Counter[object]) -> float:
    """Cosine of two count vectors."""
    product = sum(count * b[key] for key, count in a.items())
    return product / math.sqrt(_squared_norm(a) * _squared_norm(b)) if a and b else 0.0


def jaccard(a: set[str], b: set[str]) -> float:
    """Shared words over all words."""
    return len(a & b) / max(1, len(a | b))


def count_tags(words: list[str]) -> Counter[object]:
    """Counts of part-of-speech tags and tag bigrams."""
    tags = [tag_word(word) for word in words]
    return Counter([*tags, *pairwise(tags)])


MATRICES: dict[str, tuple[Prepare, Pair]] = {
    "first_words": (lambda words: words[:2], compare_words),
    "last_words": (lambda words: words[:-3:-1], compare_words),
    "rhyme": (lambda words: find_rhyme_sounds(words[-1]) if words else None, compare_sounds),
    "part_of_speech": (count_tags, cosine),
    "word_overlap": (set, jaccard),
}


def compute_by_loops(
    elements: Sequence[str], names: Sequence[str] = tuple(MATRICES)
) -> list[list[float]]:
    """A row per element: twelve statistics of every matrix."""
    tokens = tokenize_elements(elements)
    element_words = [
        [tokens.vocabulary[word] for word in tokens.ids[start:end]]
        for start, end in pairwise(tokens.starts)
    ]
    rows: list[list[float]] = [[] for _ in elements]
    for prepare, compare in (MATRICES[name] for name in names):
        prepared = [prepare(words) for words in element_words]
        for index, own in enumerate(prepared):
            rows[index] += compute_statistics([compare(own, other) for other in prepared], index)
    return rows


def compute_statistics(row: list[float], index: int) -> list[float]:
    """The statistics of `feature.STATISTICS`, in their order."""
    count = len(row)
    if count == 1:
        return [0.0] * 12
    others = row[:index] + row[index + 1 :]
    mean = sum(others) / len(others)
    ordered = sorted(others, reverse=True)
    best = ordered[0]
    before, after = row[max(0, index - 4) : index], row[index + 1 : index + 5]
    match = (
        next(other for other, value in enumerate(row) if other != index and value == best)
        if best > 0
        else index
    )
    return [
        mean,
        best,
        math.sqrt(sum((value - mean) ** 2 for value in others) / len(others)),
        ordered[math.ceil(len(others) / 4) - 1],
        ordered[math.ceil(len(others) / 10) - 1],
        sum(value >= 0.5 for value in others) / len(others),
        row[index - 1] if index else 0.0,
        row[index + 1] if index + 1 < count else 0.0,
        row[0] if index else 1.0,
        row[-1] if index + 1 < count else 1.0,
        sum(after) / max(1, len(after)) - sum(before) / max(1, len(before)),
        match / (count - 1),
    ]


def _squared_norm(counts: Counter[object]) -> int:
    return sum(count * count for count in counts.values())
