"""Token bucket: how often something may happen, with short bursts allowed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class TokenBucket:
    """Allows `capacity` calls at once, and `calls_per_second` on average after that.

    Not thread-safe: all calls come from the event loop. (A token of the bucket is a permission to
    call once; it has nothing to do with access tokens or tokens of a text.)
    """

    def __init__(
        self,
        capacity: int,
        calls_per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity, self.calls_per_second, self.clock = capacity, calls_per_second, clock
        self._available, self._updated = float(capacity), clock()

    def take(self) -> int:
        """Take a token and return 0, or return the whole seconds until there is one again."""
        now = self.clock()
        refill = max(0.0, now - self._updated) * self.calls_per_second
        self._available = min(float(self.capacity), self._available + refill)
        self._updated = now
        if self._available >= 1:
            self._available -= 1
            return 0
        return math.ceil((1 - self._available) / self.calls_per_second)
