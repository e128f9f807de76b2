"""Dead heads: their output is close to 0, whatever the input.

The output norm of a head is that of its value weights times its output weights. A head that rests
on the first key is not dead: it may be idle on this input and work on another (Guo et al., 2024,
"active-dormant"); the check `attention_sinks` reports it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_roles import compute_output_norms, format_head
from neural.findings.record import Record

MAX_OUTPUT_SHARE = 0.05
"""Output norm, relative to the mean of the layer's heads, below which a head counts as dead."""


class DeadHeads(DiagnosticCheck):
    """Reports heads that have almost no output.

    Their output norm is below 5 % of the mean of their layer's heads, in the weights of the best
    checkpoint. The number is their share of all heads.
    """

    code: ClassVar[str] = "ATT003"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "heads are dead"
    unit: ClassVar[str] = "of the heads"
    advice: ClassVar[str] = (
        "train with fewer heads; `neural debug RUN --dead-heads` shows the importance of each"
    )

    def find_symptom(self, run: Record) -> Symptom | None:
        """Compare the output norms of the heads of each layer."""
        layers = compute_output_norms(run)
        reasons = {
            (layer, int(head)): f"has {norms[head] / norms.mean():.1%} of the mean output norm of "
            "its layer"
            for layer, norms in layers.items()
            for head in np.flatnonzero(norms < MAX_OUTPUT_SHARE * norms.mean())
        }
        if not reasons:
            return None
        evidence = ", ".join(
            f"{format_head(*head)} {reason}" for head, reason in sorted(reasons.items())
        )
        head_count = sum(map(len, layers.values()))
        marks = [
            mark_head(*head, "dead", detail=why.replace("`", ""))
            for head, why in sorted(reasons.items())
        ]
        return Symptom(
            len(reasons) / head_count,
            evidence,
            text=f"{len(reasons)} of {head_count} heads",
            figure=build_head_grid(run, marks),
        )
