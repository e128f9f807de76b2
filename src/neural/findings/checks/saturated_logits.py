"""Saturated attention logits: the softmax is almost one-hot and its gradients vanish.

Dehghani et al. (2023) describe it. An attention logit is a scaled query–key product before the
softmax.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Importance, Symptom
from neural.findings.figure_data import build_head_grid, mark_head
from neural.findings.head_roles import format_heads
from neural.findings.record import Record
from neural.findings.run_loading import load_measure

MAX_LOGIT = 50.0
"""Attention logits above this value, in nats, are reported."""


class SaturatedLogits(DiagnosticCheck):
    """Reports heads whose largest attention logit is above 50 nats at the last recorded step.

    The number is the largest of all heads.
    """

    code: ClassVar[str] = "ATT006"
    claim: ClassVar[str] = "attention logits are saturated"
    unit: ClassVar[str] = "nats"
    importance: ClassVar[Importance] = "medium"
    advice: ClassVar[str] = (
        "normalize queries and keys (`qk_norm=true`), or lower the learning rate"
    )

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find heads with logits above MAX_LOGIT."""
        steps, values = load_measure(run, "largest_logit")
        last = values[-1]  # [layer, head]
        high = last > MAX_LOGIT
        if not high.any():
            return None
        first_step = steps[int(np.argmax((values > MAX_LOGIT).any(axis=(1, 2))))]
        since = f" since step {first_step:,}" * (len(steps) > 1)
        evidence = f"{format_heads(high, last)}; above {MAX_LOGIT:.0f}{since}"
        marks = [
            mark_head(layer, head, f"{last[layer, head]:.0f} nats", onset=first_step)
            for layer, head in np.argwhere(high)
        ]
        return Symptom(float(last[high].max()), evidence, figure=build_head_grid(run, marks))
