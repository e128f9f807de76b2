"""Attention calls of mechanisms that are not a softmax of dot products.

A mechanism (nn/mechanism.py) is the function from queries and keys to attention weights. Statistics
of softmax attention are computed without a Q×K matrix (compiled_statistics.py). For other
mechanisms, blocks of complete rows of that matrix, the dense weights, are computed by the mechanism
itself.

The weights w of a signed mechanism may be negative and have any sum. Its measures are those of
|w| / Σ|w|, the share of each key in the total influence: a distribution, so that entropy, span and
all others keep their definitions and ranges. The sign is in the maps and in `negative_mass`.
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
    from jaxtyping import Float
    from torch import Tensor

MAX_DENSE_ELEMENTS = 2**22
"""Limit of examples · heads · rows · keys · head width in memory together: 16 MB in 32 bits. The
head width counts because a mechanism may compute a vector per pair of query and key."""


@dataclass(frozen=True)
class DenseAttentionCall(AttentionCall):
    """Arguments of one attention call, and the mechanism that computes weights from them."""

    mechanism: Mechanism = field(kw_only=True)
    extra: Tensor | None = field(default=None, kw_only=True)
    """Output of the mechanism's learned module, if it has one."""

    @property
    def is_signed(self) -> bool:
        """Whether weights may be negative."""
        return self.mechanism.signed

    def iter_blocks(self, *, heads: int = 1, chunk: int | None = None) -> Iterator[RowBlock]:
        """Blocks of some rows of all heads and examples; `heads` and `chunk` are ignored.

        Blocks of fewer heads or examples are not possible: only the mechanism could slice `extra`.
        """
        rows_per_block = max(1, MAX_DENSE_ELEMENTS // (self.q[:, :, 0].numel() * self.keys))
        for row in range(0, self.queries, rows_per_block):
            rows = slice(row, min(row + rows_per_block, self.queries))
            yield self.full_block()._replace(rows=rows)

    def compute_maps(self, block: RowBlock | None = None) -> AttentionMaps:
        """Weights and masks of a block of rows, or of all rows; without scores before a softmax."""
        block = block or self.full_block()
        rows, device = block.rows, self.q.device
        # the mask of these rows, as of a call with all queries and keys
        mask = slice_mask(
            self.mask,
            first=rows.start,
            last=rows.stop,
            visible_keys=self.keys,
            queries=self.queries,
            keys=self.keys,
            device=device,
        )
        extra = self.extra
        if extra is not None and extra.is_floating_point():
            extra = extra.float()
        weights = self.mechanism.weights(self.q[:, :, rows].float(), self.k.float(), mask, extra)
        visible = mask.to_keep_mask(rows.stop - rows.start, self.keys, device)
        if visible is None:
            visible = torch.ones_like(weights, dtype=torch.bool)
        visible, weights = visible.expand_as(weights)[block[:2]], weights[block[:2]]
        return AttentionMaps(
            weights=normalize_magnitudes(weights) if self.is_signed else weights,
            signed_weights=weights if self.is_signed else None,
            visible_mask=visible,
            **self.position_fields(block),
        )


def normalize_magnitudes(weights: Float[Tensor, "B H Q K"]) -> Float[Tensor, "B H Q K"]:
    """|w| / Σ|w| of every row; a row of zeros stays 0."""
    magnitudes = weights.abs()
    total = magnitudes.sum(dim=-1, keepdim=True)
    return magnitudes / total.where(total > 0, 1.0)
