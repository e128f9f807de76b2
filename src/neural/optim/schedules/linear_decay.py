"""Linear decay (Devlin et al., 2018), optionally after a linear warm-up."""

from __future__ import annotations

from neural.optim.schedule import DecaySchedule


class LinearDecay(DecaySchedule):
    """Linear decay: falls by the same amount at every step."""

    def remaining(self, progress: float) -> float:
        """1 − progress."""
        return 1 - progress
