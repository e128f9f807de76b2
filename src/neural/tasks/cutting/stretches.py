"""A document of any length through a segmenter: a long one in overlapping stretches, many at a time.

An LSTM goes from element to element, so a book in one piece keeps a processor waiting, and attention to everything
would grow with the square. Stretches are read side by side. What is said of an element comes from a stretch that goes
on for at least `CONTEXT` elements on both sides of it, or to the end of the document; features are of the whole one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neural.tasks.cutting.predicted import AT_ONCE, scores_of

WHOLE = 4096
"""Elements of a document that is read in one piece."""
STRETCH = 1024
CONTEXT = 128
"""Elements at both ends of a stretch that are read and not answered for."""


def scores_of_any_length(
    model: Any, x: np.ndarray, *, whole: int = WHOLE, stretch: int = STRETCH, context: int = CONTEXT,
    tell: Callable[[int, int], None] = lambda done, count: None,
) -> np.ndarray:  # fmt: skip
    """The scores of the classes, (elements, classes), given a document's features; `tell` hears how far it is."""
    count = len(x)
    if count <= max(whole, stretch):
        return scores_of(model, [x])[0]
    starts = [*range(0, count - stretch, stretch - 2 * context), count - stretch]
    found: np.ndarray | None = None
    together = max(1, AT_ONCE // stretch)
    for first in range(0, len(starts), together):
        some = starts[first : first + together]
        for start, said in zip(some, scores_of(model, [x[one : one + stretch] for one in some]), strict=True):
            found = np.empty((count, said.shape[1]), said.dtype) if found is None else found
            skipped = context if start else 0
            found[start + skipped : start + stretch] = said[skipped:]   # the next one corrects the end of this one
        tell(some[-1] + stretch, count)
    assert found is not None
    return found
