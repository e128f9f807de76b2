"""Segmentations to measure: from masses, from strings of gaps, drawn at random."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

quickly = settings(max_examples=60, deadline=None)
"""Enough to find a wrong index, on a busy machine too."""


def gaps(text: str) -> np.ndarray:
    """`"010"` are the three gaps of four elements."""
    return np.array([False, *(one == "1" for one in text)])


@st.composite
def pairs(draw, *, least: int = 4, most: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Two segmentations of one document."""
    inner = draw(st.integers(least, most)) - 1
    one, other = (draw(st.lists(st.booleans(), min_size=inner, max_size=inner)) for _ in range(2))
    return np.array([False, *one]), np.array([False, *other])
