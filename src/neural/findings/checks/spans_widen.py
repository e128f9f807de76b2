"""Claim (docs/claims.md): early layers attend locally, "later layers show more global patterns".

The span of a head is its mean distance between query and key, weighted by attention, in positions.
Here it is measured without the first key: attention sinks are not long-range attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.findings.check import AnalysisCheck, Finding, decide_above
from neural.findings.record import Record
from neural.findings.run_loading import finite_mean, load_measure, split_layer_halves
from neural.stats.estimate import format_number
from neural.stats.means import estimate_mean


class SpansWiden(AnalysisCheck):
    """Tests whether later layers attend further back than early ones.

    The number is the mean span of the higher half of the layers minus that of the lower half, at
    the end of training, in positions.
    """

    code: ClassVar[str] = "EVO002"
    min_layers: ClassVar[int] = 2
    claim: ClassVar[str] = "early layers look nearby, later ones further back"
    unit: ClassVar[str] = "positions"

    def check_runs(self, runs: Sequence[Record]) -> Finding:
        """Supported if the 95 % interval of the difference, over seeds, lies above 0."""
        differences, profiles = [], []
        for run in runs:
            layer_spans = finite_mean(load_measure(run, "span_without_sink")[1][-1], axis=1)
            lower, higher = split_layer_halves(len(layer_spans))
            if higher and np.isfinite(layer_spans).all():
                differences.append(
                    float(finite_mean(layer_spans[higher]) - finite_mean(layer_spans[lower]))
                )
                profiles.append(layer_spans)
        difference = estimate_mean(differences)
        if not profiles:
            return self.create_finding("undecided", difference, "needs two layers with attention")
        # the evidence averages the spans of each layer over runs with the same number of layers
        same_depth = [profile for profile in profiles if len(profile) == len(profiles[0])]
        profile = ", ".join(
            format_number(sum(spans) / len(same_depth)) for spans in zip(*same_depth, strict=True)
        )
        evidence = f"span of the layers from the first to the last: {profile}"
        return self.create_finding(decide_above(difference), difference, evidence)
