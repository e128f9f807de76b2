"""The phases of a training, read from its own validation curve: rapid, steady, plateau or dip, recovery, best.

    1 ── rapid ── 5 ── steady ── 15 ── dip ── 20 ── recovery ── 23 best ── after

Nothing is assumed about why: a phase is a stretch of epochs and what the score did there. Changes that the noise of the
curve explains are no phases: a curve that does not rise beyond its noise has none, and a new best, a plateau's end or a
dip must stand out of it (`resolution`). tests/validity/ has the rates at which noise alone makes phases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from neural.views.levels import curve_noise

Name = Literal["rapid", "steady", "plateau", "dip", "recovery", "best", "after"]
STEEPER = 1.5
"""How many times as steep as what follows a rise must be to be called rapid."""
MIN_WAIT = 3
"""Epochs without a new best that are worth a name; a tenth of the way to the best one where that is more."""
DROP = 0.03
"""Of the whole rise: a fall by less than this is a plateau, by more a dip."""
MIN_SCORES = 8
"""From which a curve shows its own noise."""
MIN_RISE = 1e-3
"""Of the first score: a rise by less is none, however smooth."""


class Phase(NamedTuple):
    """A stretch of a curve; where one ends, the next begins."""

    name: Name
    first: int
    """Epoch, counted from 1."""
    last: int
    change: float
    """Of the score, from the first epoch to the last."""


def resolution(scores: np.ndarray, standard_error: float = 0.0) -> float:
    """The smallest difference between two chosen scores of a curve that its noise does not make by itself.

    The largest of n normal deviates is about √(2 log n); two and a half more for the other score; more where n is
    small, because the noise is known from few values. A curve of few scores bends too much from one to the next to
    show its noise: there the `standard_error` of a difference is taken, where it is known.
    """
    count = len(scores)
    if count < 3:
        return 0.0
    noise = curve_noise(scores)
    if count < MIN_SCORES and standard_error > 0:
        noise = standard_error / math.sqrt(2)
    return noise * (math.sqrt(2 * math.log(count)) + 2.5) * (1 + 5 / count)


def phases(curve: Sequence[float], *, larger_is_better: bool = True, standard_error: float = 0.0) -> list[Phase]:
    """The phases of a curve with one score per epoch, in their order; none where it does not change beyond its noise.

    `standard_error` is that of the difference between two scores, where it is known: the whole rise or fall must
    exceed it twice.
    """
    scores = np.asarray(curve, dtype=np.float64)
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError("a curve is one finite score per epoch")
    if len(scores) < 2:
        return []
    rising = scores if larger_is_better else -scores
    tolerance = resolution(scores, standard_error)
    peak, end = int(rising.argmax()), len(scores) - 1
    real = max(tolerance, 2 * standard_error, MIN_RISE * abs(float(scores[0])))
    if max(rising[peak] - rising[0], rising[peak] - rising[-1]) <= real:
        return []
    named = _rise(rising[: peak + 1], tolerance) if peak else []
    named.append(("best", peak, peak))
    if peak < end:
        named.append(("after", peak, end))
    return [Phase(name, a + 1, b + 1, float(scores[b] - scores[a])) for name, a, b in named]


class Wait(NamedTuple):
    """The longest stretch without a new best before the best score."""

    start: int
    """Index of the old best."""
    again: int
    """Index of the new one."""

    @property
    def epochs(self) -> int:
        """Between the two."""
        return self.again - self.start - 1


def longest_wait(rising: np.ndarray, tolerance: float) -> Wait | None:
    """Where a curve stood still before it went on to its best; None where it never stood still.

    It went on where the epochs after the stretch, as many as are in it, lie above its later half by more than the noise
    and by three times what the stretch itself rose: a curve that rises ever more slowly does not stand still. A stretch
    that falls by more than the noise is a dip.
    """
    peak = int(rising.argmax())
    bests = [0, *(at for at in range(1, peak + 1) if rising[at] > rising[:at].max())]
    waits = sorted((Wait(*pair) for pair in pairwise(bests)), key=lambda wait: -wait.epochs)
    for wait in waits:
        if wait.epochs < MIN_WAIT:
            return None
        stretch = rising[wait.start + 1 : wait.again]
        later = stretch[len(stretch) // 2 :]
        after = rising[wait.again : min(wait.again + wait.epochs, peak + 1)]
        went_on = float(after.mean() - later.mean())
        went_up = float(later.mean() - stretch[: len(stretch) // 2].mean())
        dipped = float(rising[wait.start] - stretch.min())   # the best so far and the worst: both were chosen
        if dipped > 1.5 * tolerance or (went_on > tolerance and went_on > 3 * went_up):
            return wait
    return None


def _rise(rising: np.ndarray, tolerance: float) -> list[tuple[Name, int, int]]:
    """From the first epoch to the best."""
    peak, whole = len(rising) - 1, float(rising[-1] - rising[0])
    wait = longest_wait(rising, tolerance)
    if wait is None or wait.again - wait.start <= max(MIN_WAIT, (peak + 1) / 10):
        return _climb(rising, 0, peak)
    start, again = wait
    low = start + int(rising[start : again + 1].argmin())
    if rising[start] - rising[low] < max(DROP * whole, tolerance):
        return [*_climb(rising, 0, start), ("plateau", start, again), *_steady(again, peak)]
    # back above the old best, and on to the best where that is no longer way than the one out of the dip
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
