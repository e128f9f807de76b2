"""Claim, docs/claims.md: "layer specialization emerges around iteration 2000" of its 5,000."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.correlation import Curve
from neural.views.finding import Analysis, Finding
from neural.views.layer_divergence import excess_curves
from neural.views.levels import beats_a_line
from neural.views.reading import mean
from neural.views.seeds import over_seeds

EARLY, LATE = 0.2, 0.6
"""Around two fifths of the training, generously."""


class Specialisation(Analysis):
    """When layers come to look at different things, as a share of the training: 0 at its beginning, 1 at its end.

    The divergence of all pairs of layers beyond that of random groups of heads (views/layer_divergence.py) goes up as
    they specialise. It sets in at the snapshot from which it is nearer its last level than its first. Two levels must
    fit the curve better than a straight line: a steady rise has no onset.
    """

    code: ClassVar[str] = "EVO005"
    claim: ClassVar[str] = "layers specialise about two fifths into the training (step 2,000 of 5,000)"
    unit: ClassVar[str] = "of the training"
    advice: ClassVar[str] = "the onset is known to a snapshot: track more often to know it better"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """Yes where all of the interval is around two fifths; no where all of it is elsewhere, or they do not."""
        curves = [specialisation(run) for run in runs]
        curves = [curve for curve in curves if len(curve.steps) > 2]
        rises = over_seeds(curve.values[-1] - curve.values[0] for curve in curves)
        sudden = [curve for curve in curves if beats_a_line(curve.values)]
        apart = max((float(np.diff(curve.steps).max() / curve.steps[-1]) for curve in curves), default=0.0)
        share = over_seeds((onset(curve) / curve.steps[-1] for curve in sudden), resolution=apart)
        low, high = np.clip([share.low, share.high], 0, 1).tolist()
        share = replace(share, low=low, high=high, seeds=rises.seeds)
        if not rises.seeds:
            return self.found("undecided", share, "it takes two layers with attention, and three snapshots of them")
        evidence = f"divergence between layers changes by {rises} over {rises.seeds} seeds"
        if not rises.low > 0:
            supported = "no" if rises.high < 0 else "undecided"
            return self.found(supported, share, f"{evidence}: no clear rise")
        evidence += f"; it has an onset in {len(sudden)} of {len(curves)} seeds"
        supported = "undecided"
        if len(sudden) < len(curves):
            evidence += " and rises steadily in the others"
        elif share.low >= EARLY and share.high <= LATE:
            supported = "yes"
        elif share.high < EARLY or share.low > LATE:
            supported = "no"
        return self.found(supported, share, evidence)


def specialisation(run: Run) -> Curve:
    """The mean over all pairs of layers."""
    steps, pairs = excess_curves(run)
    return Curve(steps, mean(pairs.reshape(len(steps), -1), axis=1))


def onset(curve: Curve) -> float:
    """The step from which it stays past the middle between its ends; NaN where it does not rise."""
    finite = np.isfinite(curve.values)
    steps, values = curve.steps[finite], curve.values[finite]
    if len(values) < 2 or values[-1] <= values[0]:
        return math.nan
    past = values >= (values[0] + values[-1]) / 2
    return float(steps[len(past) - np.argmin(past[::-1])])   # after the last snapshot that is not past it
