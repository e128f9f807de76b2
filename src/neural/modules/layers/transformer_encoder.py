"""The encoder block of the transformer (Vaswani et al., 2017), pre-norm (Xiong et al., 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.layer import Layer, Role
from neural.language.shapes import Shape, width
from neural.modules.block import Block, FeedForward, ResidualNorm
from neural.modules.heads import Heads
from neural.modules.initial import start_block
from neural.modules.late import Module

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class TransformerEncoder(Block):
    """Every position looks at all positions, then each is thought over alone."""

    role: ClassVar[Role] = "encoder"

    def build(self, x: Shape) -> Encoder:
        """Attention and feed-forward part."""
        features = width(x)
        return Encoder(self.heads(x, causal=False), self.feed_forward(features), features, **self.around())

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Two heads of three."""
        return cls(num_heads=2, d_model=6, dff=11), (7, 6)


class Encoder(Module):
    """Self-attention and a feed-forward part."""

    def __init__(
        self, attention: Heads, feed_forward: FeedForward, width: int, pre: bool, normalization: str = "layer",
        bias: bool = True, dropout: float = 0.0, init: str = "torch", blocks: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        around = (width, pre, normalization, bias, dropout)
        self.attention = ResidualNorm(attention, *around)
        self.feed_forward = ResidualNorm(feed_forward, *around)
        start_block(self, init, blocks)

    def forward(self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T E"]:
        """`mask` tells real positions from padding."""
        return self.feed_forward(self.attention(x, mask))
