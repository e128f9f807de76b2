"""Induction (Olsson et al., 2022): in "… A B … A", the attention of the last A to B."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, Axis


class InductionMass(HeadMeasure):
    """Share of the mass on the token after the last occurrence of this one: 0 none, 1 all of it.

    Needs token ids. Rows whose token is new, or that may not see that position, do not count; nor
    rows whose token is the same as the one before: the token after that is the row's own.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "shared"
    required_statistics: ClassVar[tuple[str, ...]] = ("induction",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """Weight of the position after the last earlier one with the same token."""
        (own,) = maps
        assert own.tokens is not None
        keys = torch.arange(own.tokens.shape[-1], device=own.query_positions.device)
        query_tokens = own.tokens[:, own.query_positions.clamp(0, len(keys) - 1)]
        is_earlier_same = (query_tokens.unsqueeze(-1) == own.tokens.unsqueeze(1)) & (
            keys < own.query_positions.unsqueeze(-1)
        )
        last_occurrence = torch.where(is_earlier_same, keys, -1).amax(dim=-1)
        has_target = (
            (last_occurrence >= 0)
            & (own.query_positions < len(keys))
            & (last_occurrence + 1 != own.query_positions)
        )
        return own.mass_at(torch.where(has_target, last_occurrence + 1, -1).unsqueeze(1))

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
