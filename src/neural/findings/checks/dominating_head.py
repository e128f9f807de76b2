"""Dominating heads: the output of one head is much larger than that of its layer's other heads.

The output norm of a head is that of its value weights times its output weights.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_roles import compute_output_norms, format_head
from neural.findings.record import Record

MIN_NORM_RATIO = 4.0
"""Smallest output norm of a dominating head, relative to the median of its layer's others."""


class DominatingHead(DiagnosticCheck):
    """Reports heads whose output norm is at least four times the median of the others in the layer.

    The norms are those of the best checkpoint. The number is the largest such ratio.
    """

    code: ClassVar[str] = "ATT005"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "one head dominates its layer"
    unit: ClassVar[str] = "times the median of the others"
    advice: ClassVar[str] = "remove it and compare: `neural debug RUN --dead-heads`"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Compare the output norms of the heads of each layer."""
        ratios: dict[tuple[int, int], float] = {}
        for layer, norms in compute_output_norms(run).items():
            if len(norms) > 1:
                top_head = int(np.argmax(norms))
                median_of_others = float(np.median(np.delete(norms, top_head)))
                if norms[top_head] >= MIN_NORM_RATIO * median_of_others:
                    ratio = (
                        float(norms[top_head] / median_of_others) if median_of_others else np.inf
                    )
                    ratios[layer, top_head] = ratio
        if not ratios:
            return None
        evidence = ", ".join(
            f"{format_head(*head)} has {ratio:.1f} times the median output norm of its layer's "
            "other heads"
            for head, ratio in ratios.items()
        )
        marks = [mark_head(*head, f"{ratio:.1f} ×") for head, ratio in ratios.items()]
        return Symptom(max(ratios.values()), evidence, figure=build_head_grid(run, marks))
