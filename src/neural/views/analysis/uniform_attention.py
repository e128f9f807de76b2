"""Attention that does not choose: its output is an average, whatever was asked."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.heads import named
from neural.views.reading import measure

FLAT = 0.95
"""Of the entropy of a head that looks at everything alike."""
MANY = 0.25
"""Of the heads: one that averages is nothing unusual."""


class UniformAttention(Diagnosis):
    """Share of heads within 5 % of uniform at the last look, where it is a quarter of them or more."""

    code: ClassVar[str] = "ATT001"
    claim: ClassVar[str] = "attention is close to uniform"
    unit: ClassVar[str] = "of the heads"
    advice: ClassVar[str] = "compare with a mean-pooling network of the same size before crediting attention"

    def symptom(self, run: Run) -> Symptom | None:
        """By entropy over the entropy that a uniform head would have."""
        steps, values = measure(run, "relative_entropy")
        last, there = values[-1], np.isfinite(values[-1])
        flat = last >= FLAT
        share = float(flat.sum() / max(1, there.sum()))
        if share < MANY:
            return None
        before = int((values[0] >= FLAT).sum())
        evidence = (
            f"{flat.sum()} of {there.sum()} heads end within {1 - FLAT:.0%} of uniform: {named(flat)} "
            f"({before} at step {steps[0]:,})"
        )
        return Symptom(share, evidence)
