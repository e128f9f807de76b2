"""Uniform attention: the output is an average, whatever the query."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.head_roles import format_heads
from neural.analysis.run_loading import load_measure
from neural.runs.run import Run

MIN_RELATIVE_ENTROPY = 0.95
"""Entropy relative to that of a uniform head, from which a head counts as uniform."""
MIN_UNIFORM_SHARE = 0.25
"""Share of heads from which it is a warning: single uniform heads are normal."""


class UniformAttention(DiagnosticCheck):
    """Share of heads within 5 % of uniform at the last snapshot, if a quarter or more."""

    code: ClassVar[str] = "ATT001"
    claim: ClassVar[str] = "attention is close to uniform"
    unit: ClassVar[str] = "of the heads"
    advice: ClassVar[str] = (
        "compare with a mean-pooling network of the same size before crediting attention"
    )

    def find_symptom(self, run: Run) -> Symptom | None:
        """By entropy relative to a uniform head."""
        steps, values = load_measure(run, "relative_entropy")
        last, has_head = values[-1], np.isfinite(values[-1])
        is_uniform = last >= MIN_RELATIVE_ENTROPY
        share = float(is_uniform.sum() / max(1, has_head.sum()))
        if share < MIN_UNIFORM_SHARE:
            return None
        count_at_start = int((values[0] >= MIN_RELATIVE_ENTROPY).sum())
        evidence = (
            f"{is_uniform.sum()} of {has_head.sum()} heads end within "
            f"{1 - MIN_RELATIVE_ENTROPY:.0%} of uniform: {format_heads(is_uniform)} "
            f"({count_at_start} at step {steps[0]:,})"
        )
        return Symptom(share, evidence)
