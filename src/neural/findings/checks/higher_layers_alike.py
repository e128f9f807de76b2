"""Claim (docs/claims.md): "similarity between layers 4-6 is highest", of six layers.

The excess divergence of two layers is the squared Hellinger distance of their attention (with their
heads matched) minus that of random groups of the same heads (findings/layer_divergence.py). Smaller
values mean that the layers are more alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

from neural.findings.check import AnalysisCheck, Finding, decide_above
from neural.findings.layer_divergence import compare_at_equal_distance, load_last_excess
from neural.findings.record import Record
from neural.findings.run_loading import split_layer_halves
from neural.stats.means import estimate_mean


class HigherLayersAlike(AnalysisCheck):
    """Tests whether the layers of the higher half are more alike than all other pairs of layers.

    The number is the mean excess divergence of the other pairs minus that of pairs in the higher
    half, at the end of training; it is above 0 if those in the higher half are more alike. Only
    pairs of equal distance in the network are compared, because neighbours are always similar.
    """

    code: ClassVar[str] = "EVO011"
    min_layers: ClassVar[int] = 4
    claim: ClassVar[str] = "the higher half of the layers is most alike (layers 4–6 of 6)"
    unit: ClassVar[str] = "squared Hellinger distance"

    def check_runs(self, runs: Sequence[Record]) -> Finding:
        """Supported if the 95 % interval of the difference, over seeds, lies above 0."""
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
        if not difference.n:
            return self.create_finding("undecided", difference, "needs four layers with attention")
        return self.create_finding(
            decide_above(difference),
            difference,
            "only pairs at equal distance in the network are compared",
        )
