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
from neural.views.reading import mean_curve
from neural.views.seeds import over_seeds

EARLY, LATE = 0.2, 0.6
"""Around two fifths of the training, generously."""


class Specialisation(Analysis):
    """When layers come to look at different things, as a share of the training: 0 at its beginning, 1 at its end.

    The mean Jensen–Shannon divergence of all pairs of layers goes up as they specialise; it sets in at the first look
    from which the divergence stays past the middle between its first and its last value.
    """

    code: ClassVar[str] = "EVO005"
    claim: ClassVar[str] = "layers specialise about two fifths into the training (step 2,000 of 5,000)"
    unit: ClassVar[str] = "of the training"
    advice: ClassVar[str] = "the onset is known to a look: track more often to know it better"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """Yes where all of the interval is around two fifths; no where all of it is elsewhere, or they do not."""
        curves = [mean_curve(run, "js_between") for run in runs]
        rises = over_seeds(one.values[-1] - one.values[0] for one in curves if len(one.steps) > 1)
        steps = over_seeds(onset(one) for one in curves)
        share = over_seeds(onset(one) / one.steps[-1] for one in curves if len(one.steps))
        if not rises.seeds:
            return self.found("undecided", share, "it takes two layers with attention, and two looks at them")
        evidence = f"divergence between layers changes by {rises} bits"
        if rises.low <= 0:
            supported = "no" if rises.high < 0 else "undecided"
            return self.found(supported, replace(share, seeds=rises.seeds), f"{evidence}: no clear onset")
        supported = "undecided"
        if share.low >= EARLY and share.high <= LATE:
            supported = "yes"
        elif share.high < EARLY or share.low > LATE:
            supported = "no"
        return self.found(supported, share, f"{evidence}; it sets in at step {steps}")


def onset(curve: Curve) -> float:
    """The step from which it stays past the middle between its ends; NaN where it does not rise."""
    finite = np.isfinite(curve.values)
    steps, values = curve.steps[finite], curve.values[finite]
    if len(values) < 2 or values[-1] <= values[0]:
        return math.nan
    past = values >= (values[0] + values[-1]) / 2
    return float(steps[len(past) - np.argmin(past[::-1])])   # after the last look that is not past it
