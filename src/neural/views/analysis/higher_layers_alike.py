"""Claim, docs/claims.md: "similarity between layers 4-6 is highest", of its six layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

from neural.tracking.run import Run
from neural.views.finding import Analysis, Finding, above
from neural.views.layer_divergence import at_equal_distance, last_excess
from neural.views.reading import halves
from neural.views.seeds import over_seeds


class HigherLayersAlike(Analysis):
    """Divergence of other pairs of layers minus that of two higher ones as far apart, at the last snapshot.

    Beyond that of random groups of heads (views/layer_divergence.py), in squared Hellinger distance; above 0 the higher
    half is most alike. Pairs are compared at equal distance in the network: neighbours are alike anyway.
    """

    code: ClassVar[str] = "EVO011"
    claim: ClassVar[str] = "the higher half of the layers is most alike (layers 4–6 of 6)"
    unit: ClassVar[str] = "Hellinger²"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the difference."""
        differences = []
        for run in runs:
            pairs = last_excess(run)
            _, higher = halves(len(pairs))
            inside = list(combinations(higher, 2))
            others = [pair for pair in combinations(range(len(pairs)), 2) if pair not in inside]
            differences.append(at_equal_distance(pairs, inside, others))
        difference = over_seeds(differences)
        if not difference.seeds:
            return self.found("undecided", difference, "it takes four layers with attention")
        return self.found(above(difference), difference, "at equal distance in the network")
