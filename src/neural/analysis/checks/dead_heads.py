"""Dead heads: their output is close to 0 or does not depend on the input.

Mass is the sum of attention weights. The measure `sink_excess` is the mass on the first key beyond
that of a uniform head, which attends equally to all keys: 1 is all mass. The output norm of a head
is that of its value weights times its output weights.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.figure_data import build_head_grid, mark_head
from neural.analysis.head_roles import RoleScores, compute_output_norms, format_head
from neural.analysis.run_loading import MissingDataError, load_measure
from neural.runs.run import Run

MIN_SINK_MASS = 0.95
"""`sink_excess` from which a head counts as dead ("dormant" in Guo et al., 2024)."""
MAX_OUTPUT_SHARE = 0.05
"""Output norm, relative to the mean of the layer's heads, below which a head counts as dead."""


class DeadHeads(DiagnosticCheck):
    """Reports heads that attend almost only to the first key, or have almost no output.

    Their `sink_excess` is at least 0.95, or their output norm is below 5 % of the mean of their
    layer's heads. The number is their share of all heads.
    """

    code: ClassVar[str] = "ATT003"
    claim: ClassVar[str] = "heads are dead"
    unit: ClassVar[str] = "of the heads"
    advice: ClassVar[str] = (
        "train with fewer heads; `neural debug RUN --dead-heads` shows the importance of each"
    )

    def find_symptom(self, run: Run) -> Symptom | None:
        """Check the mass on the first key, and the weights of a checkpoint if there is one."""
        # [layer, head]: mean score since its last jump
        last_levels = RoleScores("sink", *load_measure(run, "sink_excess")).last_levels
        reasons = {
            (
                int(layer),
                int(head),
            ): f"attends to the first key (`sink_excess` {last_levels[layer, head]:.2f})"
            for layer, head in np.argwhere(last_levels >= MIN_SINK_MASS)
        }
        try:
            for layer, norms in compute_output_norms(run).items():
                for head in np.flatnonzero(norms < MAX_OUTPUT_SHARE * norms.mean()):
                    reasons[layer, int(head)] = (
                        f"has {norms[head] / norms.mean():.1%} of the mean output norm of its layer"
                    )
        except MissingDataError:
            pass  # without a checkpoint, heads are judged by their attention alone
        if not reasons:
            return None
        evidence = ", ".join(
            f"{format_head(*head)} {reason}" for head, reason in sorted(reasons.items())
        )
        head_count = max(1, int(np.isfinite(last_levels).sum()))
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
