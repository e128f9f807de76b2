"""Claim, docs/claims.md: "final layers show most diversity in attention patterns"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.tracking.run import Run
from neural.views.finding import Analysis, Finding, above
from neural.views.reading import halves, mean, measure
from neural.views.seeds import number, over_seeds


class LateLayersDiverse(Analysis):
    """Head diversity of the higher half of the layers minus that of the lower half at the last look, in nats."""

    code: ClassVar[str] = "EVO010"
    claim: ClassVar[str] = "the heads of later layers differ more from each other than those of early ones"
    unit: ClassVar[str] = "nats"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the difference."""
        differences, early, late = [], [], []
        for run in runs:
            layers = measure(run, "head_diversity")[1][-1]
            lower, higher = halves(len(layers))
            if not higher:
                continue
            early.append(float(mean(layers[lower])))
            late.append(float(mean(layers[higher])))
            differences.append(late[-1] - early[-1])
        difference = over_seeds(differences)
        if not differences:
            return self.found("undecided", difference, "it takes two layers with attention")
        evidence = (
            f"diversity {number(over_seeds(early).value)} nats in the lower half of the layers, "
            f"{number(over_seeds(late).value)} in the higher half"
        )
        return self.found(above(difference), difference, evidence)
