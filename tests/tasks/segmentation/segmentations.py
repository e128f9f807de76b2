"""Test segmentations: from strings of gaps, and random ones."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

quick_settings = settings(max_examples=60, deadline=None)
"""Enough examples to find a wrong index, without a deadline for busy machines."""


def boundaries_from_gaps(text: str) -> np.ndarray:
    """`"010"` are the three gaps of four elements."""
    return np.array([False, *(gap == "1" for gap in text)])


@st.composite
def draw_pairs(draw, *, min_size: int = 4, max_size: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Two segmentations of one document."""
    gap_count = draw(st.integers(min_size, max_size)) - 1
    truth, prediction = (
        draw(st.lists(st.booleans(), min_size=gap_count, max_size=gap_count)) for _ in range(2)
    )
    return np.array([False, *truth]), np.array([False, *prediction])
