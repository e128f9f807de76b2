"""Claim (docs/claims.md): "similarity between layers 4-6 is highest", of its six layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

from neural.analysis.check import AnalysisCheck, Finding, decide_above
from neural.analysis.confidence_intervals import estimate_mean
from neural.analysis.layer_divergence import compare_at_equal_distance, load_last_excess
from neural.analysis.run_loading import split_layer_halves
from neural.runs.run import Run


class HigherLayersAlike(AnalysisCheck):
    """Divergence of other pairs of layers minus that of pairs of the higher half, at the end.

    A divergence is that of attention beyond the divergence of random groups of heads
    (analysis/layer_divergence.py), in squared Hellinger distance; above 0 the higher half is most
    alike. Pairs are compared at equal distance in the network: neighbours are always similar.
    """

    code: ClassVar[str] = "EVO011"
    claim: ClassVar[str] = "the higher half of the layers is most alike (layers 4–6 of 6)"
    unit: ClassVar[str] = "Hellinger²"

    def check_runs(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the difference."""
        differences = []
        for run in runs:
            excess = load_last_excess(run)
            _, higher = split_layer_halves(len(excess))
            higher_pairs = list(combinations(higher, 2))
            other_pairs = [
                pair for pair in combinations(range(len(excess)), 2) if pair not in higher_pairs
            ]
            differences.append(compare_at_equal_distance(excess, higher_pairs, other_pairs))
        difference = estimate_mean(differences)
        if not difference.seeds:
            return self.create_finding("undecided", difference, "needs four layers with attention")
        return self.create_finding(
            decide_above(difference), difference, "at equal distance in the network"
        )
