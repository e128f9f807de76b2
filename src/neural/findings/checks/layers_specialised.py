"""Onset of specialisation of each layer: when its attention became unlike that of other layers.

The excess divergence of two layers is the squared Hellinger distance of their attention (with their
heads matched) minus that of random groups of the same heads (findings/layer_divergence.py). It is
0 for layers that have the same kinds of heads in another order. The excess of a layer is its mean
excess divergence from all other layers.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, FindingKind, Symptom
from neural.findings.figure_data import build_curve
from neural.findings.layer_divergence import load_excess_curves
from neural.findings.record import Record
from neural.findings.run_loading import finite_mean, is_capture, is_single_capture
from neural.stats.change_points import estimate_last_level, find_onset

MIN_EXCESS = 0.05
"""Excess that a layer must reach at the end; otherwise it has not specialised."""


class LayersSpecialised(DiagnosticCheck):
    """Reports the layers that specialised, and when.

    The number is the mean step at which they did, as a share of the training. The excess of a layer
    over time is split into levels: intervals of constant mean (stats/change_points.py). A layer
    specialised at the step since which all its levels are at least half as high as the last one.
    """

    code: ClassVar[str] = "ATT009"
    min_layers: ClassVar[int] = 2
    claim: ClassVar[str] = "layers specialised"
    unit: ClassVar[str] = "of the training came before layers diverged"
    kind: ClassVar[FindingKind] = "note"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find the onset of each layer; None if no layer specialised.

        Layers that have half of their last level from the start do not count.
        """
        if is_capture(run) and is_single_capture(run):
            return None
        steps, excess = load_excess_curves(run)
        # [step, layer, layer] is filled only above the diagonal: copy it below
        symmetric = np.where(np.isfinite(excess), excess, excess.swapaxes(1, 2))
        descriptions, shares, marks = [], [], []
        layer_excess = finite_mean(symmetric, axis=2)  # [step, layer]
        for layer, curve in enumerate(layer_excess.T):
            last_level = estimate_last_level(curve)
            onset_index = find_onset(curve, last_level / 2) if last_level >= MIN_EXCESS else None
            if onset_index is not None and curve[0] < last_level / 2:
                # the first level may begin lower: its mean is compared
                onset_index += int(np.argmax(curve[onset_index:] >= last_level / 2))
                descriptions.append(
                    f"L{layer} at step {steps[onset_index]:,} "
                    f"(divergence {round(curve[0], 2) + 0.0:.2f} → {curve[-1]:.2f})"
                )
                shares.append(steps[onset_index] / steps[-1])
                marks.append((int(steps[onset_index]), f"L{layer}"))
        if not descriptions:
            return None
        first_step, first_layer = min(marks)
        text = f"{first_layer} diverged at step {first_step:,} of {steps[-1]:,}"
        if len(marks) > 1:
            text = (
                f"{len(marks)} of {len(layer_excess.T)} layers diverged, the first at step "
                f"{first_step:,} of {steps[-1]:,}"
            )
        return Symptom(
            float(np.mean(shares)),
            ", ".join(descriptions),
            text=text,
            figure=build_curve(
                series=[(f"L{layer}", steps, curve) for layer, curve in enumerate(layer_excess.T)],
                marks=marks,
                y_label="divergence from other layers",
            ),
        )
