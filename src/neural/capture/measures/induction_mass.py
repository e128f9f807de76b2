"""Induction (Olsson et al., 2022): in "… A B … A", the attention of the last A to B.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names. `needs_positions`: the measure
applies only where queries and keys have known positions in one sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, KnownPositions


class InductionMass(HeadMeasure):
    """Share of the mass on the token after the last occurrence of this one: 0 none, 1 all of it.

    Needs token ids. Rows whose token is new, or that may not see that position, do not count; nor
    rows whose token equals the one before: the token after that one is the row's own token.
    """

    unit: ClassVar[str] = "share"
    needs_positions: ClassVar[KnownPositions] = "queries_and_keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("induction",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Weight of the position after the last earlier one with the same token."""
        (layer,) = layers
        assert layer.tokens is not None
        keys = torch.arange(layer.tokens.shape[-1], device=layer.query_positions.device)
        query_tokens = layer.tokens[:, layer.query_positions.clamp(0, len(keys) - 1)]
        is_earlier_same = (query_tokens.unsqueeze(-1) == layer.tokens.unsqueeze(1)) & (
            keys < layer.query_positions.unsqueeze(-1)
        )
        last_occurrence = torch.where(is_earlier_same, keys, -1).amax(dim=-1)
        has_target = (
            (last_occurrence >= 0)
            & (layer.query_positions < len(keys))
            & (last_occurrence + 1 != layer.query_positions)
        )
        return layer.mass_at(torch.where(has_target, last_occurrence + 1, -1).unsqueeze(1))

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
