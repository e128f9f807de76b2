"""Scores that run away: the softmax has become a maximum, gradients through it vanish (Dehghani et al., 2023)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.heads import named
from neural.views.reading import measure

TROUBLE = 50.0
"""Nats."""


class SaturatedLogits(Diagnosis):
    """The largest score before the softmax at the last look, in nats, where it is above 50."""

    code: ClassVar[str] = "ATT006"
    claim: ClassVar[str] = "attention logits are saturated"
    unit: ClassVar[str] = "nats"
    advice: ClassVar[str] = "normed queries and keys (`qk_norm=true`), or a smaller learning rate"

    def symptom(self, run: Run) -> Symptom | None:
        """By the largest score of every head."""
        steps, values = measure(run, "largest_logit")
        last = values[-1]
        high = last > TROUBLE
        if not high.any():
            return None
        first = steps[int(np.argmax((values > TROUBLE).any(axis=(1, 2))))]
        evidence = f"{named(high, last)}; above {TROUBLE:.0f} since step {first:,}"
        return Symptom(float(last[high].max()), evidence)
