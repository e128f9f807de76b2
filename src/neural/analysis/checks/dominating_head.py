"""Dominating heads: one head has most of the output of its layer."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.head_roles import compute_output_norms, format_head
from neural.runs.run import Run

MIN_NORM_RATIO = 4.0
"""Output norm relative to the median of the other heads of the layer."""


class DominatingHead(DiagnosticCheck):
    """Output norm of a head over the median of the others, where it is four or more.

    The output norm of a head is that of its value weights times its output weights, in the best
    checkpoint.
    """

    code: ClassVar[str] = "ATT005"
    claim: ClassVar[str] = "one head dominates its layer"
    unit: ClassVar[str] = "times the others"
    advice: ClassVar[str] = "remove it and compare: `neural debug --run RUN --dead-heads`"

    def find_symptom(self, run: Run) -> Symptom | None:
        """By the weights of every layer."""
        ratios: dict[str, float] = {}
        for layer, norms in compute_output_norms(run).items():
            if len(norms) > 1:
                top_head = int(np.argmax(norms))
                median_of_others = float(np.median(np.delete(norms, top_head)))
                if norms[top_head] >= MIN_NORM_RATIO * median_of_others:
                    ratio = (
                        float(norms[top_head] / median_of_others) if median_of_others else np.inf
                    )
                    ratios[format_head(layer, top_head)] = ratio
        if not ratios:
            return None
        evidence = ", ".join(
            f"{name} writes {ratio:.1f} times as much" for name, ratio in ratios.items()
        )
        return Symptom(max(ratios.values()), evidence)
