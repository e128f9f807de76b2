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

MIN_GROWTH_BITS, MIN_GROWTH_SHARE = 0.05, 0.5
"""A layer must have moved away from the others by so many bits, and by such a share of where it began: two layers
differ from the start, because their weights do.
"""


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
            growth = curve[-1] - curve[0]
            if math.isfinite(at) and growth >= max(MIN_GROWTH_BITS, MIN_GROWTH_SHARE * curve[0]):
                said.append(f"L{layer} at step {at:,.0f} ({curve[0]:.2f} → {curve[-1]:.2f} bits)")
                shares.append(at / steps[-1])
        return Symptom(float(np.mean(shares)), ", ".join(said)) if said else None
