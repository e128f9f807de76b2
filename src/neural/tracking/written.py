"""Attention that is no softmax of products: the mechanism itself writes its weights out, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neural.modules.late import torch
from neural.modules.mechanism import Mechanism
from neural.modules.rowwise import rows_of
from neural.tracking.look import Look, Part
from neural.tracking.maps import Maps

if TYPE_CHECKING:
    from torch import Tensor

AT_ONCE = 2**22
"""Numbers written out together, where a mechanism holds one for every query, key and feature: 16 MB."""


@dataclass(frozen=True)
class Written(Look):
    """What one layer's attention was given, and the mechanism that makes weights of it."""

    mechanism: Mechanism = field(kw_only=True)
    extra: Tensor | None = field(default=None, kw_only=True)
    """What the mechanism's learned part gave."""

    def parts(self, *, heads: int = 1, chunk: int | None = None) -> Iterator[Part]:
        """Some rows of all heads and examples: what the learned part gave is not to be cut by anybody else."""
        every = slice(0, self.batch), slice(0, self.heads)
        step = max(1, AT_ONCE // (self.q[:, :, 0].numel() * self.keys))
        for row in range(0, self.queries, step):
            yield Part(*every, slice(row, min(row + step, self.queries)))

    def maps(self, part: Part | None = None) -> Maps:
        """Some rows written out, or all; there are no scores to tell."""
        part = part or Part(slice(0, self.batch), slice(0, self.heads), slice(0, self.queries))
        rows, device = part.rows, self.q.device
        mask = rows_of(self.mask, rows.start, rows.stop, self.keys, self.queries, self.keys, device)
        extra = self.extra.float() if self.extra is not None and self.extra.is_floating_point() else self.extra
        weights = self.mechanism.weights(self.q[:, :, rows].float(), self.k.float(), mask, extra)
        kept = mask.kept(rows.stop - rows.start, self.keys, device)
        kept = torch.ones_like(weights, dtype=torch.bool) if kept is None else kept.expand_as(weights)
        return Maps(weights=weights[part[:2]], kept=kept[part[:2]], **self.placement(part))
