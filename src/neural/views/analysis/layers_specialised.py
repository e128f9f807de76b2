"""When each layer went its own way."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.analysis.specialisation import onset
from neural.views.correlation import Curve
from neural.views.finding import Diagnosis, Kind, Symptom
from neural.views.reading import mean, measure

ENOUGH = 0.02
"""Bits that a layer must have moved away from the others."""


class LayersSpecialised(Diagnosis):
    """When layers came to look at other things than the other layers do, as a share of the training; the mean of them.

    A layer's divergence from all others (Jensen–Shannon) goes up as it specialises; it sets in at the first look from
    which it stays past the middle between its first and its last value.
    """

    code: ClassVar[str] = "ATT009"
    claim: ClassVar[str] = "layers specialised"
    unit: ClassVar[str] = "of the training"
    kind: ClassVar[Kind] = "note"

    def symptom(self, run: Run) -> Symptom | None:
        """Layer by layer."""
        steps, values = measure(run, "js_between")
        both = np.where(np.isfinite(values), values, values.swapaxes(1, 2))   # half of the pairs are written
        said, shares = [], []
        for layer, curve in enumerate(mean(both, axis=2).T):
            at = onset(Curve(steps, curve))
            if math.isfinite(at) and curve[-1] - curve[0] >= ENOUGH:
                said.append(f"L{layer} at step {at:,.0f} ({curve[0]:.2f} → {curve[-1]:.2f} bits)")
                shares.append(at / steps[-1])
        return Symptom(float(np.mean(shares)), ", ".join(said)) if said else None
