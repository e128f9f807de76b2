"""Standard deviation of the attended position.

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


class PositionSpread(HeadMeasure):
    """Standard deviation of the attended position, in positions: 0 one key, (K − 1) / 2 both ends.

    Keys that are not positions, such as a learned sink, are left out.
    """

    unit: ClassVar[str] = "positions"
    needs_positions: ClassVar[KnownPositions] = "keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("spread",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """√ Σ wⱼ (j − m)², m = Σ wⱼ j, the weights of the positions j scaled to sum to 1."""
        (layer,) = layers
        weights = layer.position_weights
        weights = weights / weights.sum(dim=-1, keepdim=True) if layer.extra_keys else weights
        # counted from the middle of the row: rounding errors are smaller
        position = torch.arange(weights.shape[-1], device=weights.device) - weights.shape[-1] // 2
        mean = (weights * position).sum(dim=-1, keepdim=True)
        return (weights * (position - mean).square()).sum(dim=-1).sqrt()

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to (K − 1) / 2: half the mass at either end is the widest."""
        return 0, (keys - 1) / 2
