"""What is held out: a random part, always the same under one seed, or the end of what has an order."""

from __future__ import annotations

import numpy as np


def split(count: int, share: float, *, seed: int, ordered: bool) -> tuple[np.ndarray, np.ndarray]:
    """The examples to train on and those held out, by number.

    A share above 0 holds out at least one example, unless it is the only one.
    """
    held = min(max(1, round(count * share)), count - 1) if share > 0 else 0
    order = np.arange(count) if ordered else generator(seed, 0, purpose=1).permutation(count)
    return np.sort(order[: count - held]), np.sort(order[count - held :])


def generator(seed: int, count: int, *, purpose: int) -> np.random.Generator:
    """Random numbers that follow from a seed and a count, with no state between; `purpose` keeps uses apart."""
    return np.random.Generator(np.random.Philox(key=[seed, count], counter=[0, 0, 0, purpose]))
