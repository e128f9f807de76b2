"""Layers that came to look at the same things: depth that is not used (rank collapse, Dong et al., 2021)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.layer_divergence import matched_curves

ALIKE = 0.02
"""Squared Hellinger distance."""


class LayersBecameAlike(Diagnosis):
    """Smallest divergence of two layers, their heads matched, at the last snapshot, where it fell below 0.02."""

    code: ClassVar[str] = "ATT007"
    claim: ClassVar[str] = "layers became alike"
    unit: ClassVar[str] = "Hellinger²"
    advice: ClassVar[str] = "train with fewer layers and compare"

    def symptom(self, run: Run) -> Symptom | None:
        """By the squared Hellinger distance of every pair, each head matched with its likest in the other layer."""
        steps, values = matched_curves(run)
        first, last = values[0], values[-1]
        alike = (last < ALIKE) & (first >= 2 * ALIKE)
        if len(steps) < 2 or not alike.any():
            return None
        pairs = [f"L{i} and L{j} ({first[i, j]:.2f} → {last[i, j]:.2f})" for i, j in np.argwhere(alike)]
        more = f" and {len(pairs) - 6} more" if len(pairs) > 6 else ""
        return Symptom(float(last[alike].min()), ", ".join(pairs[:6]) + more)
