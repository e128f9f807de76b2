"""Attention rollout: share of inputs in outputs over all layers (Abnar and Zuidema, 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from neural.capture.attention_call import full_precision
from neural.capture.measure import StackMeasure
from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.capture.attention_call import AttentionCall
    from neural.capture.attention_maps import AttentionMaps


class Rollout(StackMeasure):
    """Share of each input position in each output position: 0 is none of it, 1 all of it.

    Each layer mixes its inputs by A = (W + I) / 2: half by the mean W of its heads' weights, half
    by the residual connection, the identity I. In a row (query) that sees no key, A is the
    identity; the weight of a learned sink is left out. Rows of A sum to 1.
    """

    unit: ClassVar[str] = "share"

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """The product A(last) ⋯ A(second) · A(first) over all layers."""
        weights = layers[0].position_weights
        total = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
        for layer in layers:
            mean = layer.position_weights.mean(dim=1)
            total = mix_residual(mean, layer.query_positions) @ total
        return total

    def compute_rows(
        self, calls: Sequence[AttentionCall], rows: Int[Tensor, " R"] | None = None
    ) -> Float[Tensor, "B R K"]:
        """The same for R rows (all if None), from the last layer back to the first.

        Each layer is computed in blocks of rows, so that memory is O(R·K).
        """
        for call in calls:
            if call.queries != call.positions or call.known_positions != "queries_and_keys":
                sizes = f"{call.queries} queries and {call.positions} keys"
                raise ValueError(f"rollout needs self-attention, got {sizes}")
        batch, keys, device = calls[0].batch, calls[0].positions, calls[0].q.device
        rows = torch.arange(keys, device=device) if rows is None else rows
        with full_precision(device):
            total = functional.one_hot(rows, keys).float().expand(batch, -1, -1)
            for call in reversed(calls):
                product = torch.zeros_like(total, memory_format=torch.contiguous_format)
                for block in call.iter_blocks(heads=call.heads):
                    maps = call.compute_maps(block)
                    mixed = mix_residual(maps.position_weights.mean(dim=1), maps.query_positions)
                    product[block.batch] += total[block.batch, :, block.rows] @ mixed
                total = product
        return total

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1


def mix_residual(
    mean: Float[Tensor, "B Q K"], query_positions: Int[Tensor, " Q"]
) -> Float[Tensor, "B Q K"]:
    """The matrix A of a layer for some queries (rows); `mean`: weights averaged over heads."""
    identity = functional.one_hot(query_positions, mean.shape[-1])
    # the sum is 1, 0 in a row that sees no key, and less than 1 with a learned sink
    return (mean + identity) / (mean.sum(dim=-1, keepdim=True) + 1)
