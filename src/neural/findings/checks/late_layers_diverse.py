"""Claim (docs/claims.md): "final layers show most diversity in attention patterns".

The head diversity of a layer is the Jensen–Shannon divergence of all its heads, in nats: 0 if they
attend equally.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.findings.check import AnalysisCheck, Finding, decide_above
from neural.findings.record import Record
from neural.findings.run_loading import finite_mean, load_measure, split_layer_halves
from neural.stats.estimate import format_number
from neural.stats.means import estimate_mean


class LateLayersDiverse(AnalysisCheck):
    """Tests whether the heads of later layers differ more from each other than those of early ones.

    The number is the mean head diversity of the higher half of the layers minus that of the lower
    half, at the end of training, in nats.
    """

    code: ClassVar[str] = "EVO010"
    min_layers: ClassVar[int] = 2
    claim: ClassVar[str] = (
        "the heads of later layers differ more from each other than those of early ones"
    )
    unit: ClassVar[str] = "nats"

    def check_runs(self, runs: Sequence[Record]) -> Finding:
        """Supported if the 95 % interval of the difference, over seeds, lies above 0."""
        differences, lower_means, higher_means = [], [], []
        for run in runs:
            layer_diversity = load_measure(run, "head_diversity")[1][-1]
            lower, higher = split_layer_halves(len(layer_diversity))
            if not higher:
                continue
            lower_means.append(float(finite_mean(layer_diversity[lower])))
            higher_means.append(float(finite_mean(layer_diversity[higher])))
            differences.append(higher_means[-1] - lower_means[-1])
        difference = estimate_mean(differences)
        if not differences:
            return self.create_finding("undecided", difference, "needs two layers with attention")
        evidence = (
            f"diversity {format_number(estimate_mean(lower_means).value)} nats "
            "in the lower half of the layers, "
            f"{format_number(estimate_mean(higher_means).value)} in the higher half"
        )
        return self.create_finding(decide_above(difference), difference, evidence)
