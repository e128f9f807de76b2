"""Term counts of elements (sentences or lines), for the baselines TextTiling and C99."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neural.tasks.segmentation.tokenization import tokenize_elements

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def count_terms(elements: Sequence[str]) -> csr_array:
    """Sparse matrix of counts, (elements, terms).

    A term is the stem of a word, that is the word without its suffix; stop words are left out.
    """
    from scipy.sparse import csr_array

    terms = tokenize_elements(elements).stems
    shape = len(elements), max(1, len(terms.vocabulary))
    counts = csr_array(
        (np.ones(len(terms.ids)), terms.ids.astype(np.int32), terms.starts), shape=shape
    )
    counts.sum_duplicates()
    return counts
