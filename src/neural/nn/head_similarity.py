"""Differentiable similarity of the heads of an attention, without the Q×K matrix of weights.

Row i of a head's weights, wᵢ, holds the weights of query i for all keys. The similarity of heads g
and h is the sum of the dot products wᵢᵍ·wᵢʰ over all rows. It is estimated from sketches: for a
matrix R of random signs ±1 with r columns, (w R)·(w′ R) / r has the expectation w·w′ (Alon, Matias
and Szegedy, 1999). An attention mechanism (mechanism.py) computes the sketch `w R` without storing
w if it gets R instead of the values.

    with measure_head_similarity(model) as similarity:
        logits = model.logits(x)
    loss = loss + similarity.mean()      # 0: heads share no keys, 1: equal heads
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask, as_bool
from neural.nn.mechanism import Mechanism
from neural.nn.multi_head_attention import MultiHeadAttentionModule

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn

MIN_RANDOM_SIGNS = 16
"""Smallest number of random signs per key (columns of R): with fewer, the estimate is noisy."""


class HeadSimilarity:
    """Similarities that `measure_head_similarity` collects, one per attention call."""

    def __init__(self) -> None:
        self.similarities: list[Tensor] = []

    def mean(self) -> Tensor:
        """Mean over attention calls; ValueError if no attention had several heads."""
        if not self.similarities:
            raise ValueError("the model has no attention with several heads to compare")
        return torch.stack(self.similarities).mean()


@contextmanager
def measure_head_similarity(model: nn.Module) -> Iterator[HeadSimilarity]:
    """Measure the head similarity of each `MultiHeadAttentionModule` call inside this block."""
    similarity = HeadSimilarity()
    attentions = [
        module for module in model.modules() if isinstance(module, MultiHeadAttentionModule)
    ]
    mechanisms = [module.mechanism for module in attentions]
    for module in attentions:
        module.mechanism = _SketchingMechanism(module.mechanism, similarity)  # type: ignore[assignment]  # duck-typed
    try:
        yield similarity
    finally:
        for module, mechanism in zip(attentions, mechanisms, strict=True):
            module.mechanism = mechanism


def sketch_similarity(
    sketch: Float[Tensor, "B H Q R"], row_mask: Tensor | None = None
) -> Float[Tensor, ""]:
    """Mean dot product of the rows of two heads, divided by that of a head with itself.

    `sketch` has R random projections of each row of weights.
    `row_mask` (B, Q) is False for rows that do not count.
    """
    if row_mask is not None:
        sketch = sketch * row_mask[:, None, :, None]
    heads = sketch.shape[1]
    same_head = sketch.square().sum()
    all_pairs = sketch.sum(dim=1).square().sum()  # each pair in both orders, and each head itself
    smallest = torch.finfo(sketch.dtype).tiny
    return (all_pairs - same_head) / ((heads - 1) * same_head.clamp(min=smallest))


class _SketchingMechanism:
    """Wraps an attention mechanism: also attends to random signs, and stores the similarity."""

    def __init__(self, mechanism: Mechanism, similarity: HeadSimilarity) -> None:
        self.mechanism, self.similarity = mechanism, similarity

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mechanism, name)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """Output of the wrapped mechanism; the sketch is a second call without dropout."""
        if q.shape[1] > 1:
            # As many signs as the values are wide, if that is enough: fused kernels need queries,
            # keys and values of one width.
            shape = (v.shape[-2], max(MIN_RANDOM_SIGNS, v.shape[-1]))
            signs = (torch.randint(0, 2, shape, device=v.device) * 2 - 1).to(v.dtype)
            sketch = self.mechanism.attend(
                q, k, signs.expand(*v.shape[:2], -1, -1).contiguous(), mask, 0.0, extra
            )
            # In self-attention, padded keys are also padded queries, whose rows do not count.
            is_padded = mask.keys is not None and q.shape[-2] == k.shape[-2]
            self.similarity.similarities.append(
                sketch_similarity(sketch, as_bool(mask.keys) if is_padded else None)
            )
        return self.mechanism.attend(q, k, v, mask, dropout, extra)
