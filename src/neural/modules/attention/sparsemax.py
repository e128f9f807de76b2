"""Sparsemax attention (Martins and Astudillo, 2016): the weights nearest to the scores, most of them 0."""

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


class Sparsemax(RowWise):
    """Weights are the Euclidean projection of the scores of a row onto the simplex."""

    matrices: ClassVar[float] = 3.5

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """sparsemax(q·kᵀ / √D) over the visible keys: what is 1 or more below the best gets nothing."""
        return projected(sparsemax, scores(q, k, mask), mask.kept(q.shape[-2], k.shape[-2], q.device))


@compiled("neural.modules.kernels.sparsemax")
def sparsemax(scores: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows K"]:
    """max(score − level, 0), with the one level at which a row sums to 1."""
    sorted_scores = scores.detach().sort(dim=-1, descending=True).values
    rank = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    above = 1 + rank * sorted_scores > sorted_scores.cumsum(dim=-1)
    size = above.sum(dim=-1, keepdim=True).clamp(min=1)   # 0 only where a score is NaN
    lowest = sorted_scores.gather(-1, size - 1)
    chosen = scores >= lowest
    level = (scores.where(chosen, 0).sum(dim=-1, keepdim=True) - 1) / chosen.sum(dim=-1, keepdim=True)
    return (scores - level).clamp(min=0)
