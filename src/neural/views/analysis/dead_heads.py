"""Heads that do nothing: they write next to nothing, or what they write never depends on what they read."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.heads import Role, head_name, writing
from neural.views.reading import Missing, measure

RESTS = 0.95
"""Of the mass on the first key: such a head has gone to sleep (Guo et al., 2024)."""
WRITES = 0.05
"""Of what the heads of its layer write on average."""


class DeadHeads(Diagnosis):
    """Share of heads that rest on the first key, or write next to nothing.

    They have 0.95 of their mass there, beyond what a uniform head has, or write less than 5 % of their layer's mean.
    """

    code: ClassVar[str] = "ATT003"
    claim: ClassVar[str] = "heads are dead"
    unit: ClassVar[str] = "of the heads"
    advice: ClassVar[str] = "train with fewer heads; `neural debug --run RUN --dead-heads` shows what each is worth"

    def symptom(self, run: Run) -> Symptom | None:
        """By the last look, and by the saved weights where they are there."""
        last = Role("sink", *measure(run, "sink_excess")).now
        why = {
            (int(layer), int(head)): f"{last[layer, head]:.2f} on the first key"
            for layer, head in np.argwhere(last >= RESTS)
        }
        try:
            for layer, norms in writing(run).items():
                for head in np.flatnonzero(norms < WRITES * norms.mean()):
                    why[layer, int(head)] = f"writes {norms[head] / norms.mean():.1%} of its layer's mean"
        except Missing:
            pass   # the look alone tells
        if not why:
            return None
        said = ", ".join(f"{head_name(*place)} {reason}" for place, reason in sorted(why.items()))
        return Symptom(len(why) / max(1, int(np.isfinite(last).sum())), said)
