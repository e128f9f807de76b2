"""Cosine decay (Loshchilov and Hutter, 2016), optionally after a linear warm-up."""

from __future__ import annotations

from math import cos, pi

from neural.optim.schedule import DecaySchedule


class CosineDecay(DecaySchedule):
    """Cosine decay: falls along half a cosine, slowly at both ends."""

    def decay_factor(self, progress: float) -> float:
        """(1 + cos(π · progress)) / 2: 1 at the start of the decay, 0 at its end."""
        return 0.5 * (1 + cos(pi * progress))
