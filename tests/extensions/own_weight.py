"""A measure of another package: the weight of a position on itself."""

from __future__ import annotations

from typing import ClassVar

from neural.capture.measure import HeadMeasure


class OwnWeight(HeadMeasure):
    """The weight of a position on itself."""

    unit: ClassVar[str] = "share"

    def reference(self, *layers):
        (layer,) = layers
        return layer.weights.diagonal(dim1=-2, dim2=-1)

    def value_range(self, heads, keys):
        return 0, 1
