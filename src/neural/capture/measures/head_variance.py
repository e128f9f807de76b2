"""Variance of attention weights across the heads of a layer.

A row is the attention weights of one query over the K keys, in all heads of a layer; the value of
the layer is the mean over its rows. `reference` defines the value of a row. The compiled pass
(compiled_statistics.py) gives the same value from the numbers that `required_statistics` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import LayerMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class HeadVariance(LayerMeasure):
    """Variance of a weight across the heads, in squared shares, averaged over the visible keys.

    0: all heads are equal; 1/4: half of the heads attend to this key alone and half not at all. The
    variance divides by the number of heads.
    """

    unit: ClassVar[str] = "squared shares"
    required_statistics: ClassVar[tuple[str, ...]] = ("variance",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Σⱼ variance of wⱼ across the heads / V, V the number of keys that any head sees."""
        (layer,) = layers
        across = layer.weights.var(dim=1, correction=0).sum(dim=-1)
        return across / layer.visible_mask.any(dim=1).sum(dim=-1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1 / 4: the variance of a number between 0 and 1."""
        return 0, 0.25
