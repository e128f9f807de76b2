"""Layers that came to look at the same things: depth that is not used (rank collapse, Dong et al., 2021)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.reading import measure

ALIKE = 0.05
"""Bits."""


class LayersBecameAlike(Diagnosis):
    """Smallest divergence of two layers at the last look, in bits, where it fell below 0.05 in the training."""

    code: ClassVar[str] = "ATT007"
    claim: ClassVar[str] = "layers became alike"
    unit: ClassVar[str] = "bits"
    advice: ClassVar[str] = "train with fewer layers and compare"

    def symptom(self, run: Run) -> Symptom | None:
        """By the Jensen–Shannon divergence of every pair, head by head."""
        steps, values = measure(run, "js_between")
        first, last = values[0], values[-1]
        alike = (last < ALIKE) & ~(first < ALIKE)
        if len(steps) < 2 or not alike.any():
            return None
        pairs = [f"L{i} and L{j} ({first[i, j]:.2f} → {last[i, j]:.2f} bits)" for i, j in np.argwhere(alike)]
        more = f" and {len(pairs) - 6} more" if len(pairs) > 6 else ""
        return Symptom(float(last[alike].min()), ", ".join(pairs[:6]) + more)
