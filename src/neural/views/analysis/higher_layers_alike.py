"""Claim, docs/claims.md: "similarity between layers 4-6 is highest", of its six layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Analysis, Finding, above
from neural.views.reading import halves, mean, measure
from neural.views.seeds import over_seeds


class HigherLayersAlike(Analysis):
    """Divergence of all other pairs of layers minus that of two higher ones at the last look, in bits.

    Jensen–Shannon, 0 to 1; above 0 the higher half is most alike. The document says this and, two lines earlier, that
    the lower layers are (EVO004 asks something weaker, so that both may hold).
    """

    code: ClassVar[str] = "EVO011"
    claim: ClassVar[str] = "the higher half of the layers is most alike (layers 4–6 of 6)"
    unit: ClassVar[str] = "bits"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the difference."""
        inside, others = [], []
        for run in runs:
            pairs = measure(run, "js_between")[1][-1].copy()
            _, higher = halves(len(pairs))
            if len(higher) < 2:
                continue
            block = np.ix_(higher, higher)
            inside.append(float(mean(pairs[block])))
            pairs[block] = np.nan
            others.append(float(mean(pairs)))
        difference = over_seeds(other - inner for other, inner in zip(others, inside, strict=True))
        if not inside:
            return self.found("undecided", difference, "it takes four layers with attention")
        evidence = f"divergence of two higher layers {over_seeds(inside)}, of all other pairs {over_seeds(others)}"
        return self.found(above(difference), difference, evidence)
