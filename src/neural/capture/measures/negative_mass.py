"""Negative attention: how much of a signed mechanism's weight is subtracted (Ye et al., 2024).

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. Only mechanisms that declare `signed` have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class NegativeMass(HeadMeasure):
    """Share of the absolute weight that is negative: 0 is none of it, 1 all of it."""

    unit: ClassVar[str] = "share"
    signed_only: ClassVar[bool] = True

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Σ |w| over the keys with w < 0, divided by Σ |w| over all keys."""
        (layer,) = layers
        signed = layer.weights if layer.signed_weights is None else layer.signed_weights
        # `weights` are |w| / Σ|w|
        return layer.weights.where(signed < 0, 0.0).sum(dim=-1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
