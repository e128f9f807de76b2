"""What TextTiling and C99 look at: how often each element has each word that carries a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neural.tasks.cutting.words import words_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def term_counts(elements: Sequence[str]) -> csr_array:
    """How often each term stands in each element: elements × terms."""
    from scipy.sparse import csr_array

    terms = words_of(elements).stems
    shape = len(elements), max(1, len(terms.vocabulary))
    counts = csr_array((np.ones(len(terms.ids)), terms.ids.astype(np.int32), terms.starts), shape=shape)
    counts.sum_duplicates()
    return counts
