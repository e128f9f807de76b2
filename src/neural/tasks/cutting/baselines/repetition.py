"""The rule for songs: a line that comes again is chorus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from neural.language.declaration import count
from neural.tasks.cutting.baseline import Baseline
from neural.tasks.cutting.masses import Boundaries, label_changes
from neural.tasks.cutting.words import words_of


class Repetition(Baseline):
    """Elements that repeat are one kind, all others the other; neighbours vote on it; a part is a run of one kind.

    Elements are the same if their words are, in any case and with any punctuation; those without words never repeat.
    """

    smoothed: int = count("Elements around each one, and itself, that vote on its kind; a tie leaves it.", default=5)

    def find(self, elements: Sequence[str]) -> Boundaries:
        """Where the kind changes."""
        words = words_of(elements)
        said = [words.ids[first:last].tobytes() for first, last in zip(words.starts, words.starts[1:], strict=False)]
        often = Counter(said)
        repeated = np.array([bool(one) and often[one] > 1 for one in said])
        before = np.concatenate([[0], np.cumsum(repeated)])
        at, reach = np.arange(len(said)), self.smoothed // 2
        first, last = np.maximum(at - reach, 0), np.minimum(at + reach + 1, len(said))
        twice = 2 * (before[last] - before[first])
        voters = last - first
        return label_changes(np.where(twice == voters, repeated, twice > voters))
