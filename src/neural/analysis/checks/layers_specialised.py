"""Onset of specialisation of each layer: when its attention became unlike that of other layers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.change_points import estimate_last_level, find_onset
from neural.analysis.check import DiagnosticCheck, FindingKind, Symptom
from neural.analysis.layer_divergence import load_excess_curves
from neural.analysis.run_loading import finite_mean
from neural.runs.run import Run

MIN_EXCESS = 0.05
"""Smallest squared Hellinger distance from other layers, beyond that of random groups of heads."""


class LayersSpecialised(DiagnosticCheck):
    """Mean onset of the specialisation of layers, as a share of the training.

    By the divergence of a layer from all others beyond that of random groups of heads
    (analysis/layer_divergence.py), so that layers with the same heads in another order have not
    specialised. A level is an interval of constant mean (analysis/change_points.py); the onset is
    the start of the first one from which all levels are above half of the last.
    """

    code: ClassVar[str] = "ATT009"
    claim: ClassVar[str] = "layers specialised"
    unit: ClassVar[str] = "of the training"
    kind: ClassVar[FindingKind] = "note"

    def find_symptom(self, run: Run) -> Symptom | None:
        """By the divergence of each layer from all others."""
        steps, excess = load_excess_curves(run)
        # only the upper triangle is filled
        symmetric = np.where(np.isfinite(excess), excess, excess.swapaxes(1, 2))
        descriptions, shares = [], []
        for layer, curve in enumerate(finite_mean(symmetric, axis=2).T):
            last_level = estimate_last_level(curve)
            onset_index = find_onset(curve, last_level / 2) if last_level >= MIN_EXCESS else None
            if onset_index is not None and curve[0] < last_level / 2:
                descriptions.append(
                    f"L{layer} at step {steps[onset_index]:,} ({curve[0]:.2f} → {curve[-1]:.2f})"
                )
                shares.append(steps[onset_index] / steps[-1])
        if not descriptions:
            return None
        return Symptom(
            float(np.mean(shares)),
            f"{', '.join(descriptions)}; divergence beyond that of random groups of heads",
        )
