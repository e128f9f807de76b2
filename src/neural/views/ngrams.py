"""A small language model by counting: interpolated Witten–Bell (Witten & Bell, 1991; Chen & Goodman, 1999).

    P(c | h) = (count(h c) + kinds(h) · P(c | h without its first character)) / (count(h) + kinds(h))

`kinds(h)` is the number of different characters seen after `h`: where much has followed already, something new is
likely. Below the empty context stands the uniform distribution over the text's characters and one more, which stands
for every character that the text does not have.
"""

from __future__ import annotations

import math
from collections import Counter

ORDER = 6
"""Characters that are looked at together: five before and the one that follows."""
LONGEST = 1_000_000
"""Characters of the text that are counted; of a longer one, the first so many."""


class NGrams:
    """How likely a text is to somebody who has read another one."""

    def __init__(self, text: str, order: int = ORDER) -> None:
        if not text:
            raise ValueError("there is no text to count n-grams in")
        text, self.order = text[:LONGEST], order
        self.alphabet = len(set(text)) + 1
        self._count, self._total, self._kinds = Counter[str](), Counter[str](), Counter[str]()
        for length in range(1, order + 1):
            found = Counter(text[at : at + length] for at in range(len(text) - length + 1))
            self._count.update(found)
            for gram, count in found.items():
                self._total[gram[:-1]] += count
                self._kinds[gram[:-1]] += 1

    def probability(self, character: str, before: str) -> float:
        """Of a character after a context, of which the last `order` − 1 characters count."""
        found = 1 / self.alphabet
        for length in range(min(self.order - 1, len(before)) + 1):
            context = before[len(before) - length :]
            total = self._total.get(context, 0)
            if not total:
                break
            kinds = self._kinds[context]
            found = (self._count.get(context + character, 0) + kinds * found) / (total + kinds)
        return found

    def bits(self, text: str) -> float:
        """Per character of a text: 0 would be foreseen entirely; NaN of no text."""
        if not text:
            return math.nan
        start = self.order - 1
        return -sum(
            math.log2(self.probability(character, text[max(0, at - start) : at])) for at, character in enumerate(text)
        ) / len(text)
