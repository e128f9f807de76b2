"""What every measure promises: defined by `plain` on weights that are written out, found by one pass that never
writes them out. The contract proves them equal.

A measure has a value per row. NaN is a row that does not count: a padded query, a row with nothing to look at, a row of
which the question makes no sense (the first token has no previous one). The value of a head is the average over the
rows that count, taken after the measure, never before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import Named

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.tracking.look import Look
    from neural.tracking.maps import Axis, Maps


class Measure(Named):
    """A number that says one thing about attention."""

    unit: ClassVar[str]
    """Of the values; the docstring says it too, with the two ends of the scale."""
    layers: ClassVar[int] = 1
    """How many layers it looks at together."""
    needs: ClassVar[tuple[str, ...]] = ()
    """What the compiled pass must find in every row; none: the plain way, in chunks of rows."""
    axis: ClassVar[Axis] = "unknown"
    """Positions that must be known: of queries and keys ("shared"), of the keys ("keys"), or none
("unknown"). The measure is left out of calls where they are not."""

    def plain(self, *maps: Maps) -> Tensor:
        """The definition: a value per row, from the weights; whatever it says of empty rows is thrown away."""
        raise NotImplementedError

    def rows(self, found: dict[str, Tensor]) -> Tensor:
        """The same from what the compiled pass found."""
        return found[self.needs[0]]

    def average(self, rows: Float[Tensor, "B *H Q"]) -> Float[Tensor, "*H"]:
        """Over the rows that count, those of all examples alike; NaN where there are none."""
        return rows.nanmean(dim=(0, -1))

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """The two ends of the scale."""
        raise NotImplementedError


class HeadMeasure(Measure):
    """Of each head by itself: rows are (B, H, Q)."""


class LayerMeasure(Measure):
    """Of all heads of a layer together: rows are (B, Q)."""


class PairMeasure(Measure):
    """Of two layers, head by head: rows are (B, H, Q)."""

    layers: ClassVar[int] = 2


class StackMeasure(Measure):
    """Of a whole stack of layers, the first one first: a map (B, Q, K), not a number per row."""

    layers: ClassVar[int] = 3
    """Any number; the contract tries this one."""

    def fast(self, looks: Sequence[Look], rows: Int[Tensor, " R"] | None = None) -> Float[Tensor, "B R K"]:
        """The same for some rows, without writing any layer out."""
        raise NotImplementedError
