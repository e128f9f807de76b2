"""When each layer went its own way."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Kind, Symptom
from neural.views.layer_divergence import excess_curves
from neural.views.levels import last_level, onset
from neural.views.reading import mean

MIN_EXCESS = 0.05
"""Squared Hellinger distance by which a layer must differ from the others, beyond random groups of their heads."""


class LayersSpecialised(Diagnosis):
    """When layers came to look at other things than the other layers do, as a share of the training; the mean of them.

    By the divergence of a layer from all others beyond that of random groups of heads (views/layer_divergence.py), so
    that layers with the same heads in another order have not specialised. It sets in with the level from which it stays
    above half of its last one.
    """

    code: ClassVar[str] = "ATT009"
    claim: ClassVar[str] = "layers specialised"
    unit: ClassVar[str] = "of the training"
    kind: ClassVar[Kind] = "note"

    def symptom(self, run: Run) -> Symptom | None:
        """Layer by layer."""
        steps, pairs = excess_curves(run)
        both = np.where(np.isfinite(pairs), pairs, pairs.swapaxes(1, 2))   # half of the pairs are written
        said, shares = [], []
        for layer, curve in enumerate(mean(both, axis=2).T):
            last = last_level(curve)
            since = onset(curve, last / 2) if last >= MIN_EXCESS else None
            if since is not None and curve[0] < last / 2:
                said.append(f"L{layer} at step {steps[since]:,} ({curve[0]:.2f} → {curve[-1]:.2f})")
                shares.append(steps[since] / steps[-1])
        if not said:
            return None
        return Symptom(float(np.mean(shares)), f"{', '.join(said)}; divergence beyond that of random groups of heads")
