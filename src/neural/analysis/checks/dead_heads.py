"""Dead heads: their output is close to 0 or does not depend on the input."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.head_roles import RoleScores, compute_output_norms, format_head
from neural.analysis.run_loading import MissingDataError, load_measure
from neural.runs.run import Run

MIN_SINK_MASS = 0.95
"""Mass (sum of weights) on the first key from which a head is dormant (Guo et al., 2024)."""
MAX_OUTPUT_SHARE = 0.05
"""Output norm relative to the mean of the layer's heads."""


class DeadHeads(DiagnosticCheck):
    """Share of heads that attend to the first key only, or have almost no output.

    Their mass on the first key is at least 0.95 beyond that of a uniform head, or their output norm
    is below 5 % of the mean of their layer.
    """

    code: ClassVar[str] = "ATT003"
    claim: ClassVar[str] = "heads are dead"
    unit: ClassVar[str] = "of the heads"
    advice: ClassVar[str] = (
        "train with fewer heads; `neural debug --run RUN --dead-heads` shows the importance of each"
    )

    def find_symptom(self, run: Run) -> Symptom | None:
        """By the mass on the first key, and by the weights of a checkpoint if there is one."""
        last_levels = RoleScores("sink", *load_measure(run, "sink_excess")).last_levels
        reasons = {
            (int(layer), int(head)): f"{last_levels[layer, head]:.2f} on the first key"
            for layer, head in np.argwhere(last_levels >= MIN_SINK_MASS)
        }
        try:
            for layer, norms in compute_output_norms(run).items():
                for head in np.flatnonzero(norms < MAX_OUTPUT_SHARE * norms.mean()):
                    reasons[layer, int(head)] = (
                        f"writes {norms[head] / norms.mean():.1%} of its layer's mean"
                    )
        except MissingDataError:
            pass  # without a checkpoint, by the attention alone
        if not reasons:
            return None
        evidence = ", ".join(
            f"{format_head(*head)} {reason}" for head, reason in sorted(reasons.items())
        )
        return Symptom(len(reasons) / max(1, int(np.isfinite(last_levels).sum())), evidence)
