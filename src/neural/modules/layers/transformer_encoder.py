"""The encoder block of the transformer (Vaswani et al., 2017), pre-norm (Xiong et al., 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.layer import Layer, Role
from neural.language.shapes import Shape, width
from neural.modules.block import Block, FeedForward, ResidualNorm
from neural.modules.heads import Heads
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
        forward = FeedForward(features, self.dff or 4 * features, self.activation, self.dropout_rate)
        return Encoder(self.heads(x, causal=False), forward, features, pre=self.norm == "pre")

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Two heads of three."""
        return cls(num_heads=2, d_model=6, dff=11), (7, 6)


class Encoder(Module):
    """Self-attention and a feed-forward part."""

    def __init__(self, attention: Heads, feed_forward: FeedForward, width: int, pre: bool) -> None:
        super().__init__()
        self.attention = ResidualNorm(attention, width, pre)
        self.feed_forward = ResidualNorm(feed_forward, width, pre)

    def forward(self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T E"]:
        """`mask` tells real positions from padding."""
        return self.feed_forward(self.attention(x, mask))
