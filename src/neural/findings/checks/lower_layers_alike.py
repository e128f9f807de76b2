"""Claim (docs/claims.md): "lower layers show higher similarity to each other".

The excess divergence of two layers is the squared Hellinger distance of their attention (with their
heads matched) minus that of random groups of the same heads (findings/layer_divergence.py). Smaller
values mean that the layers are more alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import ClassVar

from neural.findings.check import AnalysisCheck, Finding, decide_above
from neural.findings.layer_divergence import compare_at_equal_distance, load_last_excess
from neural.findings.record import Record
from neural.findings.run_loading import split_layer_halves
from neural.stats.means import estimate_mean


class LowerLayersAlike(AnalysisCheck):
    """Tests whether two lower layers are more alike than a lower and a higher layer.

    The number is the mean excess divergence of pairs of a lower and a higher layer minus that of
    pairs of lower layers, at the end of training; it is above 0 if lower layers are more alike.
    Only pairs of equal distance in the network are compared, because neighbours are always similar.
    """

    code: ClassVar[str] = "EVO004"
    min_layers: ClassVar[int] = 3
    claim: ClassVar[str] = "lower layers are more alike than lower and higher ones"
    unit: ClassVar[str] = "squared Hellinger distance"

    def check_runs(self, runs: Sequence[Record]) -> Finding:
        """Supported if the 95 % interval of the difference, over seeds, lies above 0."""
        differences = []
        for run in runs:
            excess = load_last_excess(run)
            lower, higher = split_layer_halves(len(excess))
            lower_pairs, cross_pairs = list(combinations(lower, 2)), list(product(lower, higher))
            differences.append(compare_at_equal_distance(excess, lower_pairs, cross_pairs))
        difference = estimate_mean(differences)
        if not difference.n:
            return self.create_finding("undecided", difference, "needs three layers with attention")
        return self.create_finding(
            decide_above(difference),
            difference,
            "only pairs at equal distance in the network are compared",
        )
