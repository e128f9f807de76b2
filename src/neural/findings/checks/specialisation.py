"""Claim (docs/claims.md): "layer specialization emerges around iteration 2000" of 5,000.

The excess divergence of two layers is the squared Hellinger distance of their attention (with their
heads matched) minus that of random groups of the same heads (findings/layer_divergence.py). Layers
specialise if its mean over all pairs of layers rises. A snapshot is its value at one recorded step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from neural.findings.check import AnalysisCheck, FigureData, Finding
from neural.findings.layer_divergence import load_excess_curves
from neural.findings.record import Record
from neural.findings.run_loading import finite_mean
from neural.stats.change_points import has_level_shift
from neural.stats.correlation import Curve
from neural.stats.means import estimate_mean

EARLIEST_ONSET, LATEST_ONSET = 0.2, 0.6
"""An onset between these shares of the training counts as "about two fifths"."""


class Specialisation(AnalysisCheck):
    """Tests whether layers specialise about two fifths into the training.

    The number is the onset, as a share of the training. The onset is the snapshot from which the
    mean excess divergence stays closer to its last value than to its first. Two constant levels
    must fit the curve better than a straight line does: a steady rise has no onset.
    """

    code: ClassVar[str] = "EVO005"
    has_sign: ClassVar[bool] = False
    min_layers: ClassVar[int] = 2
    claim: ClassVar[str] = (
        "layers specialise about two fifths into the training (step 2,000 of 5,000)"
    )
    unit: ClassVar[str] = "of the training"
    advice: ClassVar[str] = (
        "the onset is known to one snapshot: track more often for a better estimate"
    )

    def build_figure(self, finding: Finding, runs: Sequence[Record]) -> FigureData | None:
        """The onset with its interval, and the range that the claim predicts."""
        figure = super().build_figure(finding, runs)
        band = {"low": EARLIEST_ONSET, "high": LATEST_ONSET, "label": "about two fifths"}
        return figure and {**figure, "band": band}

    def check_runs(self, runs: Sequence[Record]) -> Finding:
        """Supported if all seeds have an onset and its 95 % interval is within 0.2 to 0.6.

        Refuted if the interval lies outside of that range, or if the divergence falls.
        """
        curves = [load_specialisation_curve(run) for run in runs]
        curves = [curve for curve in curves if len(curve.steps) > 2]
        rises = estimate_mean(curve.values[-1] - curve.values[0] for curve in curves)
        curves_with_onset = [curve for curve in curves if has_level_shift(curve.values)]
        # the true onset may lie anywhere between two snapshots
        resolution = max(
            (float(np.diff(curve.steps).max() / curve.steps[-1]) for curve in curves), default=0.0
        )
        onset_share = estimate_mean(
            (find_curve_onset(curve) / curve.steps[-1] for curve in curves_with_onset),
            resolution=resolution,
        )
        # `n` of all runs, also of those without an onset: the verdict depends on them too
        onset_share = replace(onset_share.clip(0.0, 1.0), n=rises.n)
        if not rises.n:
            return self.create_finding(
                "undecided",
                onset_share,
                "needs two layers with attention, and three snapshots of them",
            )
        seeds = f" over {rises.n} seeds" if rises.n > 1 else ""
        evidence = f"divergence between layers changes by {rises}{seeds}"
        if len(curves) == 1:  # one run has an onset, but it does not show whether all rise
            finding = self.create_finding("undecided", onset_share, evidence)
            if not math.isfinite(onset_share.value):
                return finding
            (curve,) = curves
            onset = f"step {find_curve_onset(curve):,.0f} of {curve.steps[-1]:,}"
            return replace(finding, text=onset)
        if not rises.low > 0:
            supported = "no" if rises.high < 0 else "undecided"
            return self.create_finding(supported, onset_share, f"{evidence}: no clear rise")
        evidence += f"; it has an onset in {len(curves_with_onset)} of {len(curves)} seeds"
        supported = "undecided"
        if len(curves_with_onset) < len(curves):
            evidence += " and rises steadily in the others"
        elif onset_share.low >= EARLIEST_ONSET and onset_share.high <= LATEST_ONSET:
            supported = "yes"
        elif onset_share.high < EARLIEST_ONSET or onset_share.low > LATEST_ONSET:
            supported = "no"
        return self.create_finding(supported, onset_share, evidence)


def load_specialisation_curve(run: Record) -> Curve:
    """The excess divergence by step, averaged over all pairs of layers."""
    steps, pairs = load_excess_curves(run)
    return Curve(steps, finite_mean(pairs.reshape(len(steps), -1), axis=1))


def find_curve_onset(curve: Curve) -> float:
    """The step from which a curve stays above the mean of its first and its last value.

    NaN if the curve does not rise.
    """
    finite = np.isfinite(curve.values)
    steps, values = curve.steps[finite], curve.values[finite]
    if len(values) < 2 or values[-1] <= values[0]:
        return math.nan
    is_above = values >= (values[0] + values[-1]) / 2
    # the step after the last one below the mean
    return float(steps[len(is_above) - np.argmin(is_above[::-1])])
