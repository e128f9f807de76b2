"""Layers whose attention became equal: unused depth (rank collapse, Dong et al., 2021).

The distance of two layers is the mean squared Hellinger distance of their heads' attention, each
head matched with one of the other layer (findings/layer_divergence.py): 0 equal, 1 disjoint.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Symptom
from neural.findings.figure_data import build_curve
from neural.findings.layer_divergence import load_matched_curves
from neural.findings.record import Record
from neural.findings.run_loading import is_capture, is_single_capture

MAX_DISTANCE = 0.02
"""Layers are alike below this distance."""
MAX_QUOTED_PAIRS = 6
"""Pairs of layers quoted in the evidence; further ones are only counted."""


class LayersBecameAlike(DiagnosticCheck):
    """Reports pairs of layers whose distance fell from 0.04 or more to below 0.02.

    The number is the smallest of their distances at the end of training.
    """

    code: ClassVar[str] = "ATT007"
    min_layers: ClassVar[int] = 2
    claim: ClassVar[str] = "layers became alike"
    unit: ClassVar[str] = "squared Hellinger distance"
    advice: ClassVar[str] = "train with fewer layers and compare"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Compare the distances of all pairs of layers at the first and the last recorded step."""
        if is_capture(run) and is_single_capture(run):
            return None
        steps, values = load_matched_curves(run)
        first, last = values[0], values[-1]
        # twice the threshold at the start, so that a small change is no symptom
        alike = (last < MAX_DISTANCE) & (first >= 2 * MAX_DISTANCE)
        if len(steps) < 2 or not alike.any():
            return None
        pairs = [
            f"L{i} and L{j} ({first[i, j]:.2f} → {last[i, j]:.2f})" for i, j in np.argwhere(alike)
        ]
        unquoted = len(pairs) - MAX_QUOTED_PAIRS
        more = f" and {unquoted} more" if unquoted > 0 else ""
        figure = build_curve(
            series=[
                (f"L{i} and L{j}", steps, values[:, i, j])
                for i, j in np.argwhere(alike)[:MAX_QUOTED_PAIRS]
            ],
            levels=[(MAX_DISTANCE, "alike below")],
            y_label="distance of layers",
        )
        evidence = ", ".join(pairs[:MAX_QUOTED_PAIRS]) + more
        return Symptom(float(last[alike].min()), evidence, figure=figure)
