"""Base classes of attention measures.

A measure is defined by `reference` on weights written out as a matrix, and computed by one pass
(kernels.py) that never writes them out. The contract tests prove that both are equal.

A row is the distribution of one query over the keys. A measure has a value per row. NaN marks a row
that does not count: a padded query, a row that sees no key, or a row for which the measure is
undefined (the first token has no previous one). The value of a head is the average of the measure
over the rows that count, not the measure of an average row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import LowercaseDeclaration

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.capture.attention_call import AttentionCall
    from neural.capture.attention_maps import AttentionMaps, Axis


class Measure(LowercaseDeclaration):
    """Base class of measures: one property of attention as a number."""

    unit: ClassVar[str]
    """Unit of the values; the class docstring also names it, with both ends of the scale."""
    layers: ClassVar[int] = 1
    """Number of layers that it compares."""
    required_statistics: ClassVar[tuple[str, ...]] = ()
    """Row statistics of the compiled pass that it needs (names in kernels.py). Empty: computed by
    `reference` on blocks of rows."""
    axis: ClassVar[Axis] = "unknown"
    """Positions that must be known: of queries and keys ("shared"), of the keys ("keys"), or none
    ("unknown"). The measure is left out of calls where they are not known."""

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """The definition: a value per row, from the weights. Values of empty rows are ignored."""
        raise NotImplementedError

    def from_statistics(self, statistics: dict[str, Tensor]) -> Tensor:
        """The same value, from statistics of the compiled pass."""
        return statistics[self.required_statistics[0]]

    def average_rows(self, rows: Float[Tensor, "B *H Q"]) -> Float[Tensor, "*H"]:
        """Mean over the rows of all examples that count; NaN if there are none."""
        return rows.nanmean(dim=(0, -1))

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """Smallest and largest possible value with this many heads and keys."""
        raise NotImplementedError


class HeadMeasure(Measure):
    """Measure of each head by itself: rows are (B, H, Q)."""


class LayerMeasure(Measure):
    """Measure of all heads of a layer together: rows are (B, Q)."""


class PairMeasure(Measure):
    """Measure of two layers, head by head: rows are (B, H, Q)."""

    layers: ClassVar[int] = 2


class StackMeasure(Measure):
    """Measure of a stack of layers, first layer first: a map (B, Q, K), not a number per row."""

    layers: ClassVar[int] = 3
    """Any number is accepted; the contract tests use this one."""

    def compute_rows(
        self, calls: Sequence[AttentionCall], rows: Int[Tensor, " R"] | None = None
    ) -> Float[Tensor, "B R K"]:
        """`reference` for R rows (all if None), without writing out the weights of any layer."""
        raise NotImplementedError
