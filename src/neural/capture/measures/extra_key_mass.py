"""Attention to keys that are not positions, such as learned sinks.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class ExtraKeyMass(HeadMeasure):
    """Share of the mass on keys that are not positions: 0 is none of it, 1 all of it.

    Only for attention with such keys: learned sinks, and the keys that `add_bias_kv` and
    `add_zero_attn` of `nn.MultiheadAttention` append.
    """

    unit: ClassVar[str] = "share"
    required_statistics: ClassVar[tuple[str, ...]] = ("extra",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Σ wⱼ over the keys j that are not positions."""
        (layer,) = layers
        return layer.extra_mass

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
