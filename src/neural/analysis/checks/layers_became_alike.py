"""Layers whose attention became equal: unused depth (rank collapse, Dong et al., 2021)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.layer_divergence import load_matched_curves
from neural.runs.run import Run

MAX_DISTANCE = 0.02
"""Squared Hellinger distance."""


class LayersBecameAlike(DiagnosticCheck):
    """Smallest final divergence of two layers, their heads matched, where it fell below 0.02."""

    code: ClassVar[str] = "ATT007"
    claim: ClassVar[str] = "layers became alike"
    unit: ClassVar[str] = "Hellinger²"
    advice: ClassVar[str] = "train with fewer layers and compare"

    def find_symptom(self, run: Run) -> Symptom | None:
        """By the squared Hellinger distance of all pairs of layers, their heads matched."""
        steps, values = load_matched_curves(run)
        first, last = values[0], values[-1]
        alike = (last < MAX_DISTANCE) & (first >= 2 * MAX_DISTANCE)
        if len(steps) < 2 or not alike.any():
            return None
        pairs = [
            f"L{i} and L{j} ({first[i, j]:.2f} → {last[i, j]:.2f})" for i, j in np.argwhere(alike)
        ]
        more = f" and {len(pairs) - 6} more" if len(pairs) > 6 else ""
        return Symptom(float(last[alike].min()), ", ".join(pairs[:6]) + more)
