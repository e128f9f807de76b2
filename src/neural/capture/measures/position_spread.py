"""Standard deviation of the attended position."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, Axis


class PositionSpread(HeadMeasure):
    """Standard deviation of the attended position, in positions: 0 one key, (K − 1) / 2 both ends.

    Keys that are not positions, such as a learned sink, are left out.
    """

    unit: ClassVar[str] = "positions"
    axis: ClassVar[Axis] = "keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("spread",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """√ Σ wⱼ (j − m)², m = Σ wⱼ j, the weights of the positions j scaled to sum to 1."""
        weights = maps[0].position_weights
        weights = weights / weights.sum(dim=-1, keepdim=True) if maps[0].extra_keys else weights
        # counted from the middle of the row: rounding errors are smaller
        position = torch.arange(weights.shape[-1], device=weights.device) - weights.shape[-1] // 2
        mean = (weights * position).sum(dim=-1, keepdim=True)
        return (weights * (position - mean).square()).sum(dim=-1).sqrt()

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to (K − 1) / 2: half the mass at either end is the widest."""
        return 0, (keys - 1) / 2
