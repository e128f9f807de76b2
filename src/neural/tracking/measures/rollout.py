"""Where the information at a position came from, through all layers (Abnar and Zuidema, 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import functional, torch
from neural.tracking.look import exactly
from neural.tracking.measure import StackMeasure

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.tracking.look import Look
    from neural.tracking.maps import Maps


class Rollout(StackMeasure):
    """Share of each input position in each output position: 0 none of it, 1 nothing else.

    Each layer is the mean of its heads, half of it the residual: A = (W + 1) / 2. A row with nothing to look at is the
    residual alone; what a learned sink takes adds nothing. Rows sum to 1.
    """

    unit: ClassVar[str] = "share"

    def plain(self, *maps: Maps) -> Tensor:
        """A(last) ⋯ A(second) · A(first), A = (W + 1) / 2: the last layer leftmost."""
        weights = maps[0].placed
        total = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
        for one in maps:
            total = with_residual(one.placed.mean(dim=1), one.at) @ total
        return total

    def fast(self, looks: Sequence[Look], rows: Int[Tensor, " R"] | None = None) -> Float[Tensor, "B R K"]:
        """From the last layer back to the first, with each layer in chunks of rows: O(R·K) memory."""
        for look in looks:
            if look.queries != look.positions or look.axis != "shared":
                sizes = f"{look.queries} queries and {look.positions} keys"
                raise ValueError(f"rollout needs self-attention, got {sizes}")
        batch, keys, device = looks[0].batch, looks[0].positions, looks[0].q.device
        rows = torch.arange(keys, device=device) if rows is None else rows
        with exactly(device):
            total = functional.one_hot(rows, keys).float().expand(batch, -1, -1)
            for look in reversed(looks):
                before = torch.zeros_like(total, memory_format=torch.contiguous_format)
                for part in look.parts(heads=look.heads):
                    chunk = look.maps(part)
                    mixed = with_residual(chunk.placed.mean(dim=1), chunk.at)
                    before[part.batch] += total[part.batch, :, part.rows] @ mixed
                total = before
        return total

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1


def with_residual(mean: Float[Tensor, "B Q K"], at: Int[Tensor, " Q"]) -> Float[Tensor, "B Q K"]:
    """Half the head, half the position itself; all of it where the head sees nothing."""
    own = functional.one_hot(at, mean.shape[-1])
    return (mean + own) / (mean.sum(dim=-1, keepdim=True) + 1)
