"""The mean over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, need_rank, size
from neural.modules.late import Module

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class GlobalAveragePooling1D(Layer):
    """The mean of all positions of a sequence; padding does not count."""

    keeps_time = False

    @property
    def uses_mask(self) -> bool:
        """Padding does not count."""
        return True

    def shape(self, x: Shape) -> Shape:
        """Time goes away."""
        need_rank(x, 2, "a sequence, (time, features)", assume=x[-1:])
        return x[1:]

    def cost(self, x: Shape) -> Cost:
        """One vector."""
        return Cost(activations=size(x[1:]))

    def build(self, x: Shape) -> MeanOverTime:
        """A masked mean."""
        return MeanOverTime()

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Seven positions."""
        return cls(), (7, 3)


class MeanOverTime(Module):
    """The mean of the positions that the mask keeps; zeros where it keeps none."""

    def forward(self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B E"]:
        """With no mask, the plain mean."""
        if mask is None:
            return x.mean(dim=1)
        kept = mask.unsqueeze(-1)
        return x.masked_fill(~kept, 0).sum(dim=1) / kept.sum(dim=1).clamp(min=1)
