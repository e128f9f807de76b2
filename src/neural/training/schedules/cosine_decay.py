"""Half a cosine (Loshchilov and Hutter, 2016), with a warm-up if wanted."""

from __future__ import annotations

from math import cos, pi

from neural.training.decay import Decay


class CosineDecay(Decay):
    """Falls along half a cosine, slowly at both ends."""

    def left(self, done: float) -> float:
        """The cosine from its top to its bottom."""
        return 0.5 * (1 + cos(pi * done))
