"""Claim, docs/claims.md: "lower layers show higher similarity to each other than to higher layers"."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import ClassVar

from neural.tracking.run import Run
from neural.views.finding import Analysis, Finding, above
from neural.views.layer_divergence import at_equal_distance, last_excess
from neural.views.reading import halves
from neural.views.seeds import over_seeds


class LowerLayersAlike(Analysis):
    """Divergence of a lower layer from a higher one minus that of two lower ones as far apart, at the last snapshot.

    Beyond that of random groups of heads (views/layer_divergence.py), in squared Hellinger distance; above 0 the lower
    ones are more alike. Pairs are compared at equal distance in the network: neighbours are alike anyway.
    """

    code: ClassVar[str] = "EVO004"
    claim: ClassVar[str] = "lower layers are more alike than lower and higher ones"
    unit: ClassVar[str] = "Hellinger²"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """By the interval of the difference."""
        differences = []
        for run in runs:
            pairs = last_excess(run)
            lower, higher = halves(len(pairs))
            inside, across = list(combinations(lower, 2)), list(product(lower, higher))
            differences.append(at_equal_distance(pairs, inside, across))
        difference = over_seeds(differences)
        if not difference.seeds:
            return self.found("undecided", difference, "it takes three layers with attention")
        return self.found(above(difference), difference, "at equal distance in the network")
