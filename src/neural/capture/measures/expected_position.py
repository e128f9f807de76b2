"""Mean attended position.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names. `needs_positions`: the measure
applies only where the positions of the keys are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, KnownPositions


class ExpectedPosition(HeadMeasure):
    """Mean attended position, in positions: 0 is the first key, K − 1 the last.

    Counted from the first key of the call, padding included. Keys that are not positions, such as a
    learned sink, are left out of the mean.
    """

    unit: ClassVar[str] = "positions"
    needs_positions: ClassVar[KnownPositions] = "keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("position",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Σ wⱼ j / Σ wⱼ over the positions j."""
        (layer,) = layers
        weights = layer.position_weights
        sums = (weights * torch.arange(weights.shape[-1], device=weights.device)).sum(dim=-1)
        return sums / weights.sum(dim=-1) if layer.extra_keys else sums

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to K − 1: the first and the last key."""
        return 0, keys - 1
