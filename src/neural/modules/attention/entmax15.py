"""1.5-entmax attention (Peters et al., 2019; Correia et al., 2019): half-way between softmax and sparsemax."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.modules.attention.self import scores
from neural.modules.compiled import compiled
from neural.modules.late import torch
from neural.modules.mask import Mask
from neural.modules.rowwise import RowWise, projected

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Entmax15(RowWise):
    """Weights are the 1.5-entmax of the scores of a row: smooth like softmax near the best, 0 far from it."""

    matrices: ClassVar[float] = 3.5

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """entmax15(q·kᵀ / √D) over the visible keys: what is 2 or more below the best gets nothing."""
        return projected(entmax15, scores(q, k, mask), mask.kept(q.shape[-2], k.shape[-2], q.device))


@compiled("neural.modules.kernels.entmax15")
def entmax15(scores: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows K"]:
    """max(score / 2 − level, 0)², with the one level at which a row sums to 1."""
    half = scores / 2
    sorted_half = half.detach().sort(dim=-1, descending=True).values
    rank = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    mean, square = sorted_half.cumsum(dim=-1) / rank, sorted_half.square().cumsum(dim=-1) / rank
    levels = mean - ((1 / rank - square + mean.square()).clamp(min=0)).sqrt()
    size = (levels <= sorted_half).sum(dim=-1, keepdim=True).clamp(min=1)   # 0 only where a score is NaN
    lowest = sorted_half.gather(-1, size - 1)
    # the level once more, from the chosen alone, so that the gradient runs through it
    chosen = half >= lowest
    count = chosen.sum(dim=-1, keepdim=True)
    mean = half.where(chosen, 0).sum(dim=-1, keepdim=True) / count
    spread = (half - mean).where(chosen, 0).square().sum(dim=-1, keepdim=True)
    level = mean - ((1 - spread) / count).clamp(min=torch.finfo(half.dtype).tiny).sqrt()
    return (half - level).clamp(min=0).square()
