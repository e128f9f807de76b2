"""Claim, docs/claims.md: "lower layers show higher similarity to each other than to higher layers"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Analysis, Finding, above
from neural.views.reading import halves, mean, measure
from neural.views.seeds import over_seeds


class LowerLayersAlike(Analysis):
    """Divergence of a lower layer from a higher one minus that of two lower ones at the last look, in bits.

    Jensen–Shannon, 0 to 1; above 0 the lower ones are more alike. Layers that stand further apart in the network are
    compared in the first, so a mere drift from layer to layer supports the claim too; the evidence has that of two
    higher layers beside it, which a drift leaves equal.
    """

    code: ClassVar[str] = "EVO004"
    claim: ClassVar[str] = "lower layers are more alike than lower and higher ones"
    unit: ClassVar[str] = "bits"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the difference."""
        inside, across, above_them = [], [], []
        for run in runs:
            pairs = measure(run, "js_between")[1][-1]
            lower, higher = halves(len(pairs))
            if len(lower) < 2 or not len(higher):
                continue
            inside.append(float(mean(pairs[np.ix_(lower, lower)])))
            across.append(float(mean(pairs[np.ix_(lower, higher)])))
            above_them.append(float(mean(pairs[np.ix_(higher, higher)])))
        difference = over_seeds(outer - inner for outer, inner in zip(across, inside, strict=True))
        if not inside:
            return self.found("undecided", difference, "it takes three layers with attention")
        evidence = (
            f"divergence of two lower layers {over_seeds(inside)}, of a lower and a higher one {over_seeds(across)}, "
            f"of two higher ones {over_seeds(above_them)}"
        )
        return self.found(above(difference), difference, evidence)
