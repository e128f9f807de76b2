"""Claim, docs/claims: "early layers develop local attention patterns while later layers show more global patterns"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Analysis, Finding, above
from neural.views.reading import halves, mean, measure
from neural.views.seeds import number, over_seeds


class SpansWiden(Analysis):
    """Mean span of the higher half of the layers minus that of the lower half at the last snapshot, in positions.

    Without the first key: a head that rests on it looks at nothing far away.
    """

    code: ClassVar[str] = "EVO002"
    claim: ClassVar[str] = "early layers look nearby, later ones further back"
    unit: ClassVar[str] = "positions"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the difference."""
        wider, profiles = [], []
        for run in runs:
            layers = mean(measure(run, "span_without_sink")[1][-1], axis=1)
            lower, higher = halves(len(layers))
            if higher and np.isfinite(layers).all():
                wider.append(float(mean(layers[higher]) - mean(layers[lower])))
                profiles.append(layers)
        difference = over_seeds(wider)
        if not profiles:
            return self.found("undecided", difference, "it takes two layers with attention")
        same = [one for one in profiles if len(one) == len(profiles[0])]
        spans = ", ".join(number(sum(layer) / len(same)) for layer in zip(*same, strict=True))
        evidence = f"span of the layers from the first to the last: {spans}"
        return self.found(above(difference), difference, evidence)
