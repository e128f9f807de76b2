"""Saturated attention logits: one-hot softmax, vanishing gradients (Dehghani et al., 2023)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.head_roles import format_heads
from neural.analysis.run_loading import load_measure
from neural.runs.run import Run

MAX_LOGIT = 50.0
"""Nats."""


class SaturatedLogits(DiagnosticCheck):
    """Largest attention logit at the last snapshot, in nats, where it is above 50."""

    code: ClassVar[str] = "ATT006"
    claim: ClassVar[str] = "attention logits are saturated"
    unit: ClassVar[str] = "nats"
    advice: ClassVar[str] = (
        "normalize queries and keys (`qk_norm=true`), or lower the learning rate"
    )

    def find_symptom(self, run: Run) -> Symptom | None:
        """By the largest logit of every head."""
        steps, values = load_measure(run, "largest_logit")
        last = values[-1]
        high = last > MAX_LOGIT
        if not high.any():
            return None
        first_step = steps[int(np.argmax((values > MAX_LOGIT).any(axis=(1, 2))))]
        evidence = f"{format_heads(high, last)}; above {MAX_LOGIT:.0f} since step {first_step:,}"
        return Symptom(float(last[high].max()), evidence)
