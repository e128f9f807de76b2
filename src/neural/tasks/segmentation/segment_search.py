"""Best segmentation of a sequence by dynamic programming, while the sequence is still growing.

The sequence consists of units, such as the sentences of a text. A segmentation is a list of
segments (start, end) that cover the units. For each end the caller states which starts are
possible, and from which start on a segment counts as short. The result is the best segmentation in
this order: the fewest boundaries at units where no segment should begin, the fewest short segments,
the largest total gain of the boundaries. Among equally good ones, that with the longest last
segment wins, then that with the longest segment before it.

Units are pushed in blocks. All best paths of the search so far usually share their first segments:
those segments cannot change any more, whatever follows. `find_path` returns them; `commit` drops
them. Time is linear in the number of units, memory in the number of units that are not committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

Cost = tuple[int, int, float]
"""Forbidden boundaries, short segments, and minus the gain; compared in this order."""


class SegmentSearch:
    """Search for the best segmentation. Units and ends have indices from 0 in the full sequence."""

    def __init__(self) -> None:
        self.base = 0
        """Number of committed units; the search begins here."""
        self.count = 0
        """Number of all units that were pushed."""
        # Entry i of each list belongs to the unit, or to the end, with the index base + i.
        self._gains: list[float] = []
        self._is_forbidden: list[bool] = []
        self._lows: list[int] = [0]
        self._highs: list[int] = [-1]
        # The best segmentation of everything before the index: its cost, and its last start.
        self._costs: list[Cost] = [(0, 0, 0.0)]
        self._previous: list[int] = [-1]
        # The same cost with the boundary at the index itself.
        self._values: list[Cost] = []
        self._min_low = 0
        self._restart()

    def push(
        self,
        gains: npt.ArrayLike,
        is_forbidden: npt.ArrayLike,
        lows: npt.ArrayLike,
        highs: npt.ArrayLike,
    ) -> None:
        """Append units, (n,) each, and search on.

        `gains` are those of a boundary at the unit; `is_forbidden` is True where no segment should
        begin. Entry i of `lows` and `highs` belongs to a segment that ends after unit i: it starts
        at a unit ≥ low, which must be ≤ i, and it is short if it starts at a unit > high. Both never
        fall.
        """
        self._gains += np.asarray(gains, float).tolist()
        self._is_forbidden += np.asarray(is_forbidden, bool).tolist()
        self._lows += np.maximum(lows, self._min_low).tolist()
        self._highs += np.asarray(highs).tolist()
        self.count = self.base + len(self._gains)
        self._advance()

    def exclude(self, segments: Sequence[tuple[int, int]]) -> None:
        """Search again without these segments, and without all segments that contain one of them.

        A segment of one unit cannot be excluded, so there is always a segmentation.
        """
        for start, end in segments:
            if end - start < 2:
                raise ValueError("a segment of one unit cannot be excluded")
            for index in range(end - self.base, len(self._lows)):
                # `lows` never fall: all later ones are large enough, too.
                if self._lows[index] > start:
                    break
                self._lows[index] = start + 1
            self._min_low = max(self._min_low, start + 1)
        self._search_again()

    def find_path(self, *, is_final: bool) -> list[tuple[int, int]]:
        """Segments from `base` on that cannot change any more; all of them if `is_final`."""
        end = self.count if is_final else self._find_common_end()
        ends = [end]
        while ends[-1] > self.base:
            ends.append(self._previous[ends[-1] - self.base])
        return list(zip(ends[:0:-1], ends[-2::-1], strict=True))

    def commit(self, end: int, *, is_stable: bool = True) -> None:
        """Drop all units before `end`, which is an end of a segment that `find_path` has returned.

        Not `is_stable`: it is on the final path, but not on the path of segments that cannot
        change. The search then begins again at this end.
        """
        dropped = end - self.base
        for entries in (
            self._gains,
            self._is_forbidden,
            self._lows,
            self._highs,
            self._costs,
            self._previous,
            self._values,
        ):
            del entries[:dropped]
        self.base = end
        self._next_long = max(self._next_long, end)
        if not is_stable:
            self._search_again()

    def _search_again(self) -> None:
        del self._costs[1:], self._previous[1:], self._values[:]
        self._restart()
        self._advance()

    def _restart(self) -> None:
        # Two monotonic queues of starts, best first. The first start that has never been in `_long`
        # is `_next_long`; `_short` has starts that would give a short segment.
        self._long: deque[int] = deque()
        self._short: deque[int] = deque()
        self._next_long = self.base
        self._done = self.base

    def _advance(self) -> None:
        """Find the best last segment for every end up to `count`."""
        base, values, costs = self.base, self._values, self._costs
        gains, is_forbidden = self._gains, self._is_forbidden
        long, short, next_long = self._long, self._short, self._next_long
        for end in range(self._done + 1, self.count + 1):
            low, high = self._lows[end - base], self._highs[end - base]
            start = end - 1
            value = costs[start - base]
            if start > 0:
                forbidden, short_count, loss = value
                forbidden += is_forbidden[start - base]
                value = (forbidden, short_count, loss - gains[start - base])
            values.append(value)
            while next_long <= high and next_long < end:
                candidate = values[next_long - base]
                while long and values[long[-1] - base] > candidate:
                    long.pop()
                long.append(next_long)
                next_long += 1
            while long and long[0] < low:
                long.popleft()
            if start > high:
                while short and values[short[-1] - base] > value:
                    short.pop()
                short.append(start)
            while short and (short[0] <= high or short[0] < low):
                short.popleft()
            # Every end has a possible start, so one of the queues is not empty.
            best_start = long[0] if long else short[0]
            cost = values[best_start - base]
            if short:
                forbidden, short_count, loss = values[short[0] - base]
                short_cost = (forbidden, short_count + 1, loss)
                if not long or short_cost < cost:
                    best_start, cost = short[0], short_cost
            costs.append(cost)
            self._previous.append(best_start)
        self._next_long, self._done = next_long, self.count

    def _find_common_end(self) -> int:
        """The last end that is on the best paths to all starts that may still be used."""
        # A later segment starts at a unit of `_long`, or at one that has never been in it.
        low = max(self.base, self._lows[-1])
        waiting = range(max(low, self._next_long), self.count + 1)
        heap = [-start for start in {*self._long, *waiting}]
        heapify(heap)
        while len(heap) > 1:
            start = -heappop(heap)
            # Equal entries are one path.
            if heap and -heap[0] == start:
                continue
            heappush(heap, -self._previous[start - self.base])
        return -heap[0]
