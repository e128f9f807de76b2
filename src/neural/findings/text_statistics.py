"""Statistics of reference text: a character n-gram model and inverse document frequency.

The n-gram model is interpolated Witten–Bell (Witten & Bell, 1991; Chen & Goodman, 1999):

    P(c | h) = (count(h c) + kinds(h) · P(c | h′)) / (count(h) + kinds(h))

`c` is a character, and `h`, its history, the characters before it. `h′` is `h` without its first
character. `kinds(h)` is the number of different characters that follow `h` in the text: the more
kinds there are, the more likely is a new one. The recursion ends with the uniform distribution over
the characters of the text and one more, which stands for all other characters.
"""

from __future__ import annotations

import math
import re
from collections import Counter

WORDS_PER_SEGMENT = 20
"""Words of a segment, which is the "document" of inverse document frequency."""
MAX_IDF_CHARACTERS = 1_000_000
"""Only this many characters of a longer text are counted."""


class InverseDocumentFrequency:
    """Inverse document frequency of words, smoothed as in scikit-learn.

    `idf[word]` is log((1 + segments) / (1 + segments with the word)) + 1. It is 1 for words that
    occur in every segment, and finite for words that occur in none.
    """

    def __init__(self, text: str) -> None:
        segments = split_into_segments(text[:MAX_IDF_CHARACTERS])
        self._segment_count = len(segments)
        self._segments_with_word = Counter(word for segment in segments for word in set(segment))

    def __getitem__(self, word: str) -> float:
        return math.log((1 + self._segment_count) / (1 + self._segments_with_word[word])) + 1


def split_into_segments(text: str, words_per_segment: int = WORDS_PER_SEGMENT) -> list[list[str]]:
    """Split the words of a text, in lower case, into segments; a shorter rest is dropped."""
    words = re.findall(r"\w+", text.lower())
    return [
        words[start : start + words_per_segment]
        for start in range(0, len(words) - words_per_segment + 1, words_per_segment)
    ]


NGRAM_ORDER = 6
"""Characters per n-gram: five of history and the predicted one."""
MAX_NGRAM_CHARACTERS = 1_000_000
"""Only this many characters of a longer text are counted."""


class NGramModel:
    """Character n-gram model of a text."""

    def __init__(self, text: str, order: int = NGRAM_ORDER) -> None:
        if not text:
            raise ValueError("there is no text to count n-grams in")
        text, self.order = text[:MAX_NGRAM_CHARACTERS], order
        self.alphabet_size = len(set(text)) + 1  # one more for all other characters
        self._ngram_counts, self._context_counts, self._continuation_counts = (
            Counter[str](),
            Counter[str](),
            Counter[str](),
        )
        for length in range(1, order + 1):
            counts = Counter(
                text[start : start + length] for start in range(len(text) - length + 1)
            )
            self._ngram_counts.update(counts)
            for gram, count in counts.items():
                self._context_counts[gram[:-1]] += count
                self._continuation_counts[gram[:-1]] += 1

    def probability(self, character: str, history: str) -> float:
        """Probability of a character after the last `order` − 1 characters of a history."""
        probability = 1 / self.alphabet_size
        # from the shortest context to the longest, each interpolated with the one before
        for length in range(min(self.order - 1, len(history)) + 1):
            context = history[len(history) - length :]
            total = self._context_counts.get(context, 0)
            if not total:
                break
            kinds = self._continuation_counts[context]
            count = self._ngram_counts.get(context + character, 0)
            probability = (count + kinds * probability) / (total + kinds)
        return probability

    def bits_per_character(self, text: str) -> float:
        """Cross-entropy of a text in bits per character; NaN for an empty text."""
        if not text:
            return math.nan
        context_length = self.order - 1
        return -sum(
            math.log2(self.probability(character, text[max(0, index - context_length) : index]))
            for index, character in enumerate(text)
        ) / len(text)
