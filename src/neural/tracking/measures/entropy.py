"""How spread out a row's weights are (Shannon, 1948)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class Entropy(HeadMeasure):
    """Entropy of the weights, in nats: 0 looks at one key, log K looks at all alike."""

    unit: ClassVar[str] = "nats"
    needs: ClassVar[tuple[str, ...]] = ("entropy",)

    def plain(self, *maps: Maps) -> Tensor:
        """−Σ w log w."""
        return nats(maps[0].weights)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to log K: at most the log of the keys."""
        return 0, math.log(keys)


def nats(weights: Tensor) -> Tensor:
    """The entropy over the last axis; a weight of 0 adds nothing."""
    return -torch.xlogy(weights, weights).sum(dim=-1)
