"""Attention calls of mechanisms that are not a softmax of dot products.

A mechanism (nn/mechanism.py) is the function from queries and keys to weights; it computes them
itself, some rows (queries) at a time. Dense: its weights are whole rows of a Q×K matrix, where the row
statistics of softmax attention need no matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neural.capture.attention_call import AttentionCall, RowBlock
from neural.capture.attention_maps import AttentionMaps
from neural.nn.lazy_torch import torch
from neural.nn.mechanism import Mechanism
from neural.nn.positionwise import slice_mask

if TYPE_CHECKING:
    from torch import Tensor

MAX_DENSE_ELEMENTS = 2**22
"""Limit of rows · keys · features in memory together: 16 MB in 32 bits."""


@dataclass(frozen=True)
class DenseAttentionCall(AttentionCall):
    """Arguments of one attention call, and the mechanism that computes weights from them."""

    mechanism: Mechanism = field(kw_only=True)
    extra: Tensor | None = field(default=None, kw_only=True)
    """Output of the mechanism's learned module, if it has one."""

    def iter_blocks(self, *, heads: int = 1, chunk: int | None = None) -> Iterator[RowBlock]:
        """Blocks of rows, all heads and examples: only the mechanism can slice `extra`.

        `heads` and `chunk` are ignored.
        """
        rows_per_block = max(1, MAX_DENSE_ELEMENTS // (self.q[:, :, 0].numel() * self.keys))
        for row in range(0, self.queries, rows_per_block):
            rows = slice(row, min(row + rows_per_block, self.queries))
            yield self.full_block()._replace(rows=rows)

    def compute_maps(self, block: RowBlock | None = None) -> AttentionMaps:
        """Weights and masks of a block of rows, or of all rows; there are no scores."""
        block = block or self.full_block()
        rows, device = block.rows, self.q.device
        # the mask of these rows, as of a call with all queries and keys
        mask = slice_mask(
            self.mask, rows.start, rows.stop, self.keys, self.queries, self.keys, device
        )
        extra = self.extra
        if extra is not None and extra.is_floating_point():
            extra = extra.float()
        weights = self.mechanism.weights(self.q[:, :, rows].float(), self.k.float(), mask, extra)
        visible = mask.to_keep_mask(rows.stop - rows.start, self.keys, device)
        if visible is None:
            visible = torch.ones_like(weights, dtype=torch.bool)
        return AttentionMaps(
            weights=weights[block[:2]],
            visible_mask=visible.expand_as(weights)[block[:2]],
            **self.position_fields(block),
        )
