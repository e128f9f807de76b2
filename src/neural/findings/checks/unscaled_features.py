"""Unscaled features: inputs so large or so small that a network learns slowly or not at all.

The scale of a feature is its root mean square over the training examples (`data/feature_scales`);
standardised features have 1. Initial weights and learning rates suit inputs around that size.
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import DiagnosticCheck, Importance, Symptom
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError
from neural.stats.estimate import format_number

FEATURE_SCALES_KEY = "data/feature_scales"
MAX_SCALE = 10.0
"""A feature with a larger root mean square is unscaled."""
MIN_SCALE = 0.01
"""If all features have a smaller root mean square, they are unscaled."""
MAX_DRAWN_FEATURES = 8
"""Features in the picture, the largest first."""


class UnscaledFeatures(DiagnosticCheck):
    """Reports a run with an input feature that is too large, or whose features are all too small.

    The number is the largest root mean square of a feature. It is reported above 10 or below 0.01.
    """

    code: ClassVar[str] = "TRN006"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "input features are not scaled"
    unit: ClassVar[str] = "root mean square"
    importance: ClassVar[Importance] = "medium"
    advice: ClassVar[str] = (
        "set `table.standardize: true`, or divide the inputs by their standard deviation"
    )

    @classmethod
    def applies_to(cls, run: Record) -> bool:
        """Runs whose inputs are numbers, not token ids."""
        return run.metadata(FEATURE_SCALES_KEY) is not None

    def find_symptom(self, run: Record) -> Symptom | None:
        """Check the scales that the task saved; MissingDataError if inputs are no numbers."""
        scales = run.metadata(FEATURE_SCALES_KEY)
        if not isinstance(scales, dict) or not scales:
            raise MissingDataError(f"{run.name} has no `{FEATURE_SCALES_KEY}`: no scaled inputs")
        known = {name: scale for name, scale in scales.items() if isinstance(scale, float | int)}
        if not known:
            return None
        name = max(known, key=lambda feature: known[feature])
        largest, smallest = known[name], min(known.values())
        if MIN_SCALE <= largest <= MAX_SCALE:
            return None
        evidence = f"feature `{name}` has the root mean square {format_number(largest)}" + (
            f", the smallest one {format_number(smallest)}" if len(known) > 1 else ""
        )
        largest_first = sorted(known.items(), key=lambda item: -item[1])[:MAX_DRAWN_FEATURES]
        rows = [
            {"label": feature, "number": {"value": float(scale)}}
            for feature, scale in largest_first
        ]
        figure = {"kind": "estimates", "unit": self.unit, "reference": 0, "rows": rows}
        return Symptom(float(largest), evidence, figure=figure)
