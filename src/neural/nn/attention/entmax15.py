"""1.5-entmax attention (Peters et al., 2019; Correia et al., 2019).

α-entmax with α = 1.5 is half-way between softmax (α = 1) and sparsemax (α = 2).

A mechanism (mechanism.py): `weights` defines it. It is positionwise: the weights of a query do not
depend on other queries, so the base class computes `weights @ v` in chunks of queries. Scores are
q·kᵀ / √D plus the biases of the mask. `extra` is unused: it is for mechanisms with learned
parameters.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Cost
from neural.nn.attention.self import dot_product_scores
from neural.nn.kernel_dispatch import use_kernel
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask
from neural.nn.positionwise import PositionwiseMechanism, project_masked_rows

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def _load_kernel() -> ModuleType:
    """The compiled form of `entmax15`, imported at its first use."""
    from neural.nn.kernels import entmax15

    return entmax15


def _load_attention_kernel() -> ModuleType:
    """The compiled form of `Entmax15.attend`, imported at its first use."""
    from neural.nn.kernels import entmax_attention

    return entmax_attention


class Entmax15(PositionwiseMechanism):
    """Weights are the 1.5-entmax of a row: smooth near the largest score, 0 far below it."""

    alpha: ClassVar[float] = 1.5
    """The α of α-entmax, for the kernel."""

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """entmax15(q·kᵀ / √D) over the visible keys; 0 for scores 2 or more below the largest."""
        return project_masked_rows(
            entmax15,
            dot_product_scores(q, k, mask),
            mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device),
        )

    @use_kernel(_load_attention_kernel)
    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """`weights @ v` in chunks of queries."""
        return super().attend(q, k, v, mask, dropout, extra)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products of Q·K·D multiply-adds per head; the kernel skips values without weight.

        Saves the output and, for each query, its largest score and the threshold of its weights.
        Without the kernel, a single chunk of queries also saves matrices of Q × K.
        """
        return Cost(
            multiply_adds=2 * heads * queries * keys * width,
            activations=heads * queries * (width + 2),
        )


@use_kernel(_load_kernel)
def entmax15(scores: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows K"]:
    """max(score / 2 − threshold, 0)², with the threshold at which a row sums to 1."""
    half = scores / 2
    sorted_half = half.detach().sort(dim=-1, descending=True).values
    rank = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
    # For n = 1, 2, …: mean and mean square of the n largest scores, and the threshold if exactly
    # these had positive weight.
    mean, square = sorted_half.cumsum(dim=-1) / rank, sorted_half.square().cumsum(dim=-1) / rank
    thresholds = mean - ((1 / rank - square + mean.square()).clamp(min=0)).sqrt()
    in_support = thresholds <= sorted_half
    support_size = in_support.sum(dim=-1, keepdim=True).clamp(min=1)  # 0 only if a score is NaN
    lowest = sorted_half.gather(-1, support_size - 1)
    # The support is the scores with positive weight. The sort above is detached; the threshold is
    # computed again from the support, so that the gradient flows through it.
    support = half >= lowest
    count = support.sum(dim=-1, keepdim=True)
    mean = half.where(support, 0).sum(dim=-1, keepdim=True) / count
    deviation = (half - mean).where(support, 0).square().sum(dim=-1, keepdim=True)
    threshold = mean - ((1 - deviation) / count).clamp(min=torch.finfo(half.dtype).tiny).sqrt()
    return (half - threshold).clamp(min=0).square()
