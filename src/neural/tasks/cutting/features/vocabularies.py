"""Does another vocabulary begin here? What posterior.py says, with short and long parts in mind and words trusted more
and less."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature
from neural.tasks.cutting.posterior import log_odds
from neural.tasks.cutting.words import Words

WAYS = {
    "easily": {"usual": 25.0, "share": 0.25, "prior": 0.1},
    "short": {"usual": 8.0, "share": 0.5, "prior": 0.5},
    "long": {"usual": 25.0, "share": 0.5, "prior": 0.5},
    "surely": {"usual": 25.0, "share": 1.0, "prior": 0.5},
}
"""`log_odds`: a low prior finds parts easily, a share of 1 takes every word for independent evidence."""
ODDS = 8.0
"""Beyond this, odds say the same."""


class Vocabularies(Feature):
    """For every way: the logarithm of the odds that a part begins at the element, and its probability; 0 at the first.
    """

    columns: ClassVar[tuple[str, ...]] = (*(f"odds_{way}" for way in WAYS), *(f"begins_{way}" for way in WAYS))

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """All of the document at once: where a part begins depends on where the others do."""
        odds = np.stack([log_odds(words.stems, **way) for way in WAYS.values()], axis=1).clip(-ODDS, ODDS)
        found = np.concatenate([odds, 1 / (1 + np.exp(-odds))], axis=1)
        found[0] = 0
        return found
