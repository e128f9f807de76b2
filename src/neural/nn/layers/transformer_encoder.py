"""The encoder block of the transformer (Vaswani et al., 2017), pre-norm (Xiong et al., 2020).

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.layer import Layer, Role
from neural.language.shapes import Shape, feature_width
from neural.nn.initializers import init_block
from neural.nn.lazy_torch import Module
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.nn.transformer_block import FeedForward, ResidualNorm, TransformerBlock

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class TransformerEncoder(TransformerBlock):
    """Transformer encoder block: self-attention over all positions, then a feed-forward network."""

    role: ClassVar[Role] = "encoder"

    def build(self, x: Shape) -> EncoderBlock:
        """Self-attention and feed-forward network."""
        features = feature_width(x)
        return EncoderBlock(
            self.build_attention(x, causal=False),
            self.build_feed_forward(features),
            features,
            **self.residual_options(),
        )

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Two heads of width 3."""
        return cls(num_heads=2, d_model=6, dff=11), (7, 6)


class EncoderBlock(Module):
    """Self-attention and feed-forward network, each with norm and residual connection.

    `pre` puts norms before sublayers instead of after. `init="gpt2"` depends on `blocks`, the
    number of blocks in the network.
    """

    def __init__(
        self,
        attention: MultiHeadAttentionModule,
        feed_forward: FeedForward,
        width: int,
        pre: bool,
        normalization: str = "layer",
        bias: bool = True,
        dropout: float = 0.0,
        init: str = "torch",
        blocks: int = 1,
    ) -> None:
        super().__init__()
        options = (width, pre, normalization, bias, dropout)
        self.attention = ResidualNorm(attention, *options)
        self.feed_forward = ResidualNorm(feed_forward, *options)
        init_block(self, init, blocks)

    def forward(
        self, x: Float[Tensor, "B T E"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T E"]:
        """`mask` is True for positions that are not padding."""
        return self.feed_forward(self.attention(x, mask))
