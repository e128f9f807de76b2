"""How much the heads of an attention look at the same places, with a gradient, and without writing the weights out.

Heads g and h look alike where the rows of their weights point the same way: Σᵢ wᵢᵍ·wᵢʰ. Such products need no n×n
matrix: with signs R drawn at random, (w R)·(w′ R) / r is w·w′ on average (Alon, Matias and Szegedy, 1999), and `w R` is
what the mechanism computes anyway, with R in the place of the values.

    with comparing(model) as heads:
        scores = model.scores(x)
    loss = loss + heads.alike()      0 nothing in common, 1 all the same
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neural.modules.heads import Heads
from neural.modules.late import torch
from neural.modules.mask import Mask, as_bool
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn

SIGNS = 16
"""Random signs per key at least; of fewer, one comparison says too little."""


class Comparison:
    """What was seen of each attention with several heads while a model ran."""

    def __init__(self) -> None:
        self.found: list[Tensor] = []

    def alike(self) -> Tensor:
        """The mean over attentions; ValueError where there was none with several heads."""
        if not self.found:
            raise ValueError("the model has no attention with several heads to compare")
        return torch.stack(self.found).mean()


@contextmanager
def comparing(model: nn.Module) -> Iterator[Comparison]:
    """Every attention of ours that runs in this block is compared head with head."""
    comparison = Comparison()
    several = [one for one in model.modules() if isinstance(one, Heads)]
    own = [one.mechanism for one in several]
    for one in several:
        one.mechanism = _Sketched(one.mechanism, comparison)   # type: ignore[assignment]  # it does what a mechanism does
    try:
        yield comparison
    finally:
        for one, mechanism in zip(several, own, strict=True):
            one.mechanism = mechanism


def likeness(sketch: Float[Tensor, "B H Q R"], real: Tensor | None = None) -> Float[Tensor, ""]:
    """Mean product of two different heads' rows over that of a head with itself; `real` (B, Q) leaves rows out."""
    if real is not None:
        sketch = sketch * real[:, None, :, None]
    heads = sketch.shape[1]
    itself = sketch.square().sum()
    together = sketch.sum(dim=1).square().sum()   # every pair in both orders, and each head with itself
    return (together - itself) / ((heads - 1) * itself.clamp(min=torch.finfo(sketch.dtype).tiny))


class _Sketched:
    """A mechanism that mixes random signs beside the values."""

    def __init__(self, mechanism: Mechanism, comparison: Comparison) -> None:
        self.mechanism, self.comparison = mechanism, comparison

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mechanism, name)

    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, dropout: float = 0.0, extra: Tensor | None = None
    ) -> Tensor:
        """As the mechanism does it; and once more for the comparison, without dropout."""
        if q.shape[1] > 1:
            shape = (v.shape[-2], max(SIGNS, v.shape[-1]))   # as wide as the values, where that is enough
            signs = (torch.randint(0, 2, shape, device=v.device) * 2 - 1).to(v.dtype)
            sketch = self.mechanism.mix(q, k, signs.expand(*v.shape[:2], -1, -1).contiguous(), mask, 0.0, extra)
            alone = mask.keys is not None and q.shape[-2] == k.shape[-2]
            self.comparison.found.append(likeness(sketch, as_bool(mask.keys) if alone else None))
        return self.mechanism.mix(q, k, v, mask, dropout, extra)
