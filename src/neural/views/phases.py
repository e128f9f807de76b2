"""The phases of a training, read from its own validation curve: rapid, steady, plateau or dip, recovery, best.

    1 ── rapid ── 5 ── steady ── 15 ── dip ── 20 ── recovery ── 23 best ── after

Nothing is assumed about why: a phase is a stretch of epochs and what the score did there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

Name = Literal["rapid", "steady", "plateau", "dip", "recovery", "best", "after"]
STEEPER = 1.5
"""How many times as steep as what follows a rise must be to be called rapid."""
LEAST = 3
"""Epochs without a new best that are worth a name; a tenth of the way to the best one where that is more."""
DROP = 0.03
"""Of the whole rise: a fall by less than this is a plateau, by more a dip."""


class Phase(NamedTuple):
    """A stretch of a curve; where one ends, the next begins."""

    name: Name
    first: int
    """Epoch, counted from 1."""
    last: int
    change: float
    """Of the score, from the first epoch to the last."""


def phases(curve: Sequence[float], *, larger_is_better: bool = True) -> list[Phase]:
    """The phases of a curve with one score per epoch, in their order; nothing of a curve of fewer than two."""
    scores = np.asarray(curve, dtype=np.float64)
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError("a curve is one finite score per epoch")
    if len(scores) < 2:
        return []
    rising = scores if larger_is_better else -scores
    peak, end = int(rising.argmax()), len(scores) - 1
    named: list[tuple[Name, int, int]] = []
    if peak:
        named += _rise(rising[: peak + 1])
    named.append(("best", peak, peak))
    if peak < end:
        named.append(("after", peak, end))
    return [Phase(name, a + 1, b + 1, float(scores[b] - scores[a])) for name, a, b in named]


def _rise(rising: np.ndarray) -> list[tuple[Name, int, int]]:
    """From the first epoch to the best."""
    peak, whole = len(rising) - 1, float(rising[-1] - rising[0])
    bests = [0, *(at for at in range(1, peak + 1) if rising[at] > rising[:at].max())]
    start, again = max(pairwise(bests), key=lambda pair: pair[1] - pair[0])
    if again - start <= max(LEAST, (peak + 1) / 10):
        return _climb(rising, 0, peak)
    low = start + int(rising[start : again + 1].argmin())
    if rising[start] - rising[low] < DROP * whole:
        return [*_climb(rising, 0, start), ("plateau", start, again), *_steady(again, peak)]
    # back above the old best, and on to the peak where that is no longer way than the one out of the dip
    until = peak if peak - again <= max(2, again - low) else again
    return [*_climb(rising, 0, start), ("dip", start, low), ("recovery", low, until), *_steady(until, peak)]


def _climb(rising: np.ndarray, first: int, last: int) -> list[tuple[Name, int, int]]:
    """A rise, cut where it bends most if its beginning is much the steeper."""
    if last - first < 2:
        return _steady(first, last)
    best = np.maximum.accumulate(rising[first : last + 1])
    straight = np.linspace(best[0], best[-1], len(best))
    bend = int((best - straight).argmax())
    if 0 < bend < len(best) - 1:
        before = (best[bend] - best[0]) / bend
        behind = (best[-1] - best[bend]) / (len(best) - 1 - bend)
        if before >= STEEPER * behind:
            return [("rapid", first, first + bend), ("steady", first + bend, last)]
    return _steady(first, last)


def _steady(first: int, last: int) -> list[tuple[Name, int, int]]:
    return [("steady", first, last)] if last > first else []
