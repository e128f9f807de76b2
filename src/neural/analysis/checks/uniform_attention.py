"""Uniform attention: the output is the mean of all values, whatever the query.

A uniform head attends equally to all keys. The measure `relative_entropy` of a head is the entropy
of its attention weights divided by that of a uniform head: 1 is uniform.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Importance, Symptom
from neural.analysis.head_roles import format_heads
from neural.analysis.run_loading import load_measure
from neural.runs.run import Run

MIN_RELATIVE_ENTROPY = 0.95
"""Relative entropy from which a head counts as uniform."""
MIN_UNIFORM_SHARE = 0.25
"""Share of uniform heads from which there is a warning: single uniform heads are normal."""


class UniformAttention(DiagnosticCheck):
    """Reports heads whose relative entropy is at least 0.95 at the end of training.

    The number is their share of all heads. It is reported if it is at least a quarter.
    """

    code: ClassVar[str] = "ATT001"
    claim: ClassVar[str] = "attention is close to uniform"
    unit: ClassVar[str] = "of the heads"
    importance: ClassVar[Importance] = "medium"
    advice: ClassVar[str] = (
        'train the same network with `attention="uniform"`, which averages: if it scores the same, '
        "attention adds nothing here"
    )

    def find_symptom(self, run: Run) -> Symptom | None:
        """Find uniform heads at the last recorded step."""
        steps, values = load_measure(run, "relative_entropy")
        # [layer, head]; NaN where a layer has fewer heads
        last = values[-1]
        is_measured = np.isfinite(last)
        is_uniform = last >= MIN_RELATIVE_ENTROPY
        share = float(is_uniform.sum() / max(1, is_measured.sum()))
        if share < MIN_UNIFORM_SHARE:
            return None
        count_at_start = int((values[0] >= MIN_RELATIVE_ENTROPY).sum())
        evidence = (
            f"{is_uniform.sum()} of {is_measured.sum()} heads have a relative entropy of "
            f"{MIN_RELATIVE_ENTROPY} or more at the end: {format_heads(is_uniform)} "
            f"({count_at_start} heads at step {steps[0]:,})"
        )
        return Symptom(share, evidence)
