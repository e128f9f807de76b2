"""Linear decay (Devlin et al., 2018), optionally after a linear warm-up."""

from __future__ import annotations

from neural.optim.schedule import DecaySchedule


class LinearDecay(DecaySchedule):
    """Linear decay: falls by the same amount at every step."""

    def decay_factor(self, progress: float) -> float:
        """1 − progress: 1 at the start of the decay, 0 at its end."""
        return 1 - progress
