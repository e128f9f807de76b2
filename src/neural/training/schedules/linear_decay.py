"""A rate that falls along a line (Devlin et al., 2018), with a warm-up if wanted."""

from __future__ import annotations

from neural.training.decay import Decay


class LinearDecay(Decay):
    """Falls by the same amount at every step."""

    def left(self, done: float) -> float:
        """What has not passed."""
        return 1 - done
