"""Claim, docs/claims.md: "some heads specialize in very local (1-3 token) patterns while others look further back"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Analysis, Finding
from neural.views.reading import has_learned, measure
from neural.views.seeds import share_over_seeds

NEAR = 3.0
"""Positions within which 90 % of a local head's mass lies."""


class LocalHeads(Analysis):
    """Share of heads with 90 % of their mass within 3 positions at the last snapshot, which had it not at the first.

    Supported where every seed has such a head and one that looks further; not, where none has. Of models that learned:
    one that did not says nothing about what learning does.
    """

    code: ClassVar[str] = "EVO003"
    claim: ClassVar[str] = "some heads become local (1–3 characters) while others look further back"
    unit: ClassVar[str] = "of the heads"

    def examine(self, runs: Sequence[Run]) -> Finding:
        """By counting the seeds in which it happened."""
        counts, totals, both, names, idle = [], [], [], [], 0
        for run in runs:
            steps, span = measure(run, "span90")
            if len(steps) < 2:
                continue
            if not has_learned(run):
                idle += 1
                continue
            there = np.isfinite(span[-1])
            local = (span[-1] <= NEAR) & ~(span[0] <= NEAR) & there
            counts.append(int(local.sum()))
            totals.append(int(there.sum()))
            both.append(bool(local.any() and (span[-1] > NEAR).any()))
            names.append(f"{local.sum()} of {there.sum()}")
        share = share_over_seeds(counts, totals)
        if not both:
            why = "no run has learned" if idle else "no run has two snapshots of its attention"
            return self.found("undecided", share, why)
        supported = "yes" if all(both) else "no" if not any(both) else "undecided"
        evidence = f"heads that became local, seed by seed: {', '.join(names)}; with others that look further in " \
                   f"{sum(both)} of {len(both)} seeds"  # fmt: skip
        return self.found(supported, share, evidence)
