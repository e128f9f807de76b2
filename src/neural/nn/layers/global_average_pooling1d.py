"""Mean over time.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size. A ShapeError is
reported to the user with its code; the check of later layers continues with the shape
`assumed_output`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.layer import Layer
from neural.language.shapes import Cost, Shape, numel, require_rank
from neural.nn.lazy_torch import Module

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class GlobalAveragePooling1D(Layer):
    """Mean over all positions that are not padding."""

    keeps_time = False  # the padding mask of the input does not fit the output

    @property
    def uses_mask(self) -> bool:
        """True: the module takes the padding mask, and padding does not count."""
        return True

    def shape(self, x: Shape) -> Shape:
        """The input's shape without the time axis."""
        require_rank(x, 2, "a sequence, (time, features)", assumed_output=x[-1:])
        return x[1:]

    def cost(self, x: Shape) -> Cost:
        """Saves the output."""
        return Cost(activations=numel(x[1:]))

    def build(self, x: Shape) -> MeanOverTime:
        """The masked mean."""
        return MeanOverTime()

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Seven positions."""
        return cls(), (7, 3)


class MeanOverTime(Module):
    """Mean over the positions where the padding mask is True; zeros if there are none."""

    def forward(
        self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B E"]:
        """Without a mask, the mean over all positions."""
        if mask is None:
            return x.mean(dim=1)
        keep = mask.unsqueeze(-1)
        return x.masked_fill(~keep, 0).sum(dim=1) / keep.sum(dim=1).clamp(min=1)
