"""How badly the second layer's map stands in for the first's (Kullback and Leibler, 1951)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tracking.measure import PairMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class KlBetween(PairMeasure):
    """Kullback–Leibler divergence of the first row from the second, in nats: 0 alike, no upper end."""

    unit: ClassVar[str] = "nats"
    needs: ClassVar[tuple[str, ...]] = ("kl",)

    def plain(self, *maps: Maps) -> Tensor:
        """Σ p (log p − log q).

        From the log weights where there are scores, since a weight may round to 0 and its log may not.
        """
        one, other = maps
        if one.scores is None or other.scores is None:
            return (torch.xlogy(one.weights, one.weights) - torch.xlogy(one.weights, other.weights)).sum(dim=-1)
        scored = ((one.scores, one.kept), (other.scores, other.kept))
        p, q = (scores.masked_fill(~kept, -math.inf).log_softmax(dim=-1) for scores, kept in scored)
        return torch.where(one.kept, one.weights * (p - q), 0).sum(dim=-1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: no upper end."""
        return 0, math.inf
