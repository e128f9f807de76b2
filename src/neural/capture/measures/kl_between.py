"""Kullback–Leibler divergence of two layers' attention (Kullback and Leibler, 1951).

A row is the attention weights of one query over the K keys. p is a row of the first layer and q
that of the same head and query in the second; the value is the mean over rows. `reference` defines
the value of a pair of rows. The compiled pass (compiled_statistics.py) gives the same value from
the numbers that `required_statistics` names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import PairMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class KlBetween(PairMeasure):
    """Kullback–Leibler divergence of the first row from the second, in nats: 0 equal, unbounded."""

    unit: ClassVar[str] = "nats"
    required_statistics: ClassVar[tuple[str, ...]] = ("kl",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Σ p (log p − log q), p of the first layer and q of the second.

        From the scores if there are any: a weight may round to 0 where its log is finite.
        """
        first, second = layers
        p = first.weights
        if first.scores is None or second.scores is None:
            return (torch.xlogy(p, p) - torch.xlogy(p, second.weights)).sum(dim=-1)
        scored = ((first.scores, first.visible_mask), (second.scores, second.visible_mask))
        log_p, log_q = (
            scores.masked_fill(~visible, -math.inf).log_softmax(dim=-1)
            for scores, visible in scored
        )
        return torch.where(first.visible_mask, p * (log_p - log_q), 0).sum(dim=-1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: no upper end."""
        return 0, math.inf
