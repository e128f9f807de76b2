"""Claim (docs/claims.md): "lower layers show higher similarity to each other"."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import ClassVar

from neural.analysis.check import AnalysisCheck, Finding, decide_above
from neural.analysis.confidence_intervals import estimate_mean
from neural.analysis.layer_divergence import compare_at_equal_distance, load_last_excess
from neural.analysis.run_loading import split_layer_halves
from neural.runs.run import Run


class LowerLayersAlike(AnalysisCheck):
    """Divergence of lower from higher layers minus that of pairs of lower layers, at the end.

    A divergence is that of attention beyond the divergence of random groups of heads
    (analysis/layer_divergence.py), in squared Hellinger distance; above 0 the lower layers are more
    alike. Pairs are compared at equal distance in the network: neighbours are always similar.
    """

    code: ClassVar[str] = "EVO004"
    claim: ClassVar[str] = "lower layers are more alike than lower and higher ones"
    unit: ClassVar[str] = "Hellinger²"

    def check_runs(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the difference."""
        differences = []
        for run in runs:
            excess = load_last_excess(run)
            lower, higher = split_layer_halves(len(excess))
            lower_pairs, cross_pairs = list(combinations(lower, 2)), list(product(lower, higher))
            differences.append(compare_at_equal_distance(excess, lower_pairs, cross_pairs))
        difference = estimate_mean(differences)
        if not difference.seeds:
            return self.create_finding("undecided", difference, "needs three layers with attention")
        return self.create_finding(
            decide_above(difference), difference, "at equal distance in the network"
        )
