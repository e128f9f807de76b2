"""Similarity of two layers' attention beyond what all causal maps have in common.

A row is the attention weights of one query over the K keys. p is a row of the first layer and q
that of the same head and query in the second; the value is the mean over rows. `reference` defines
the value of a pair of rows. The compiled pass (compiled_statistics.py) gives the same value from
the numbers that `required_statistics` names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import PairMeasure
from neural.nn.lazy_torch import functional

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps

MIN_DISTANCE_FROM_UNIFORM = 1e-5
"""Rows nearer to uniform than this, relative to the norm of the uniform row, do not count."""


class CentredCosineBetween(PairMeasure):
    """Cosine of two rows minus the uniform row, a ratio: −1 opposite, 0 unrelated, 1 equal.

    Uniform is over the keys that the row may see. A row that is itself uniform has no direction and
    does not count.
    """

    unit: ClassVar[str] = "ratio"
    required_statistics: ClassVar[tuple[str, ...]] = ("centred",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """(p − u)·(q − u) / |p − u| |q − u|, u the uniform row."""
        first, second = (
            layer.weights - layer.visible_mask / layer.visible_count.unsqueeze(-1)
            for layer in layers
        )
        cosine = functional.cosine_similarity(first, second, dim=-1, eps=1e-30)
        for centred, layer in zip((first, second), layers, strict=True):
            distance = centred.norm(dim=-1) * layer.visible_count.sqrt()
            cosine = cosine.masked_fill(distance < MIN_DISTANCE_FROM_UNIFORM, math.nan)
        return cosine

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """−1 to 1: from opposite to equal."""
        return -1, 1
