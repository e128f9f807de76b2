"""Shannon entropy of a row's weights (Shannon, 1948).

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class Entropy(HeadMeasure):
    """Entropy of the weights, in nats: 0 is a single key, log K is uniform."""

    unit: ClassVar[str] = "nats"
    required_statistics: ClassVar[tuple[str, ...]] = ("entropy",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """−Σ w log w."""
        (layer,) = layers
        return entropy_nats(layer.weights)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to log K: at most the log of the keys."""
        return 0, math.log(keys)


def entropy_nats(weights: Tensor) -> Tensor:
    """Entropy over the last axis; a weight of 0 adds 0."""
    return -torch.xlogy(weights, weights).sum(dim=-1)
