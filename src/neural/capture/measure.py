"""Base classes of attention measures.

A measure is one property of attention, such as its entropy. `reference` defines it on the matrix of
weights. For speed it is computed from statistics of one pass over the rows, which never stores that
matrix (compiled_statistics.py). tests/contract/test_measures.py checks that both give the same
values.

A row is the distribution of one query over the keys. A measure has a value per row. NaN marks a row
that does not count: a padded query, a row that sees no key, or a row for which the measure is
undefined (the first token has no previous one). The value of a head is the average of the measure
over the rows that count, not the measure of an average row. Axes: B examples, H heads, Q queries, K
keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import RegistryEntry

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.capture.attention_call import AttentionCall
    from neural.capture.attention_maps import AttentionMaps, KnownPositions


class Measure(RegistryEntry):
    """Base class of measures: one property of attention as a number.

    A `RegistryEntry` is a class that users name in lower case: `relative_entropy`.
    """

    unit: ClassVar[str]
    """Unit of the values; the class docstring also names it, with both ends of the scale."""
    num_layers: ClassVar[int] = 1
    """Number of layers that one value is about."""
    required_statistics: ClassVar[tuple[str, ...]] = ()
    """Row statistics of the compiled pass that it is computed from, by their names in
    compiled_statistics.py. If empty, it is computed by `reference` on blocks of rows."""
    needs_positions: ClassVar[KnownPositions] = "none"
    """Whose positions must be known: those of queries and keys in one shared sequence
    ("queries_and_keys"), those of the keys ("keys"), or none ("none"). The measure is left out of
    calls where they are not known."""

    signed_only: ClassVar[bool] = False
    """Whether it is left out of calls whose weights cannot be negative (`Mechanism.signed`)."""

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """The definition: a value per row, from the weights of one layer or of `num_layers` layers.

        The caller replaces the values of rows that see no key by NaN.
        """
        raise NotImplementedError

    def from_statistics(self, statistics: dict[str, Tensor]) -> Tensor:
        """The same value from statistics of the compiled pass; by default the first one needed."""
        return statistics[self.required_statistics[0]]

    def aggregate_rows(self, rows: Float[Tensor, "B *H Q"]) -> Float[Tensor, "*H"]:
        """The value of a head (or layer): the mean over the rows of all examples that count.

        NaN if no row counts.
        """
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

    num_layers: ClassVar[int] = 2


class StackMeasure(Measure):
    """Measure of a stack of layers, first layer first: a map (B, Q, K), not a number per row."""

    num_layers: ClassVar[int] = 3
    """`compute_rows` accepts any number of layers; tests use this one."""

    def compute_rows(
        self, calls: Sequence[AttentionCall], rows: Int[Tensor, " R"] | None = None
    ) -> Float[Tensor, "B R K"]:
        """`reference` for R rows (all if None), without the complete weights of any layer."""
        raise NotImplementedError
