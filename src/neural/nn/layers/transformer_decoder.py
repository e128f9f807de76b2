"""The decoder block of the transformer (Vaswani et al., 2017), pre-norm.

Without an encoder it is the block of GPT (Radford et al., 2019).

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.core.names import to_snake_case
from neural.language.declaration import entry_field
from neural.language.layer import Layer, Role
from neural.language.shapes import (
    Cost,
    LayerAdvice,
    Shape,
    ShapeError,
    feature_width,
    require_known_sizes,
)
from neural.nn.attention import registry as attention
from neural.nn.attention.cross import Cross
from neural.nn.initializers import init_block
from neural.nn.lazy_torch import Module
from neural.nn.mechanism import Mechanism
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.nn.transformer_block import FeedForward, ResidualNorm, TransformerBlock

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class TransformerDecoder(TransformerBlock):
    """Transformer decoder block: causal self-attention, cross-attention after an encoder."""

    role: ClassVar[Role] = "decoder"

    cross_attention: Mechanism = entry_field(
        attention,
        "Attention to the encoder's output; mechanisms that depend on positions are refused.",
        default=Cross(),
    )

    memory: Shape | None = None
    """Output shape of the encoder; set by the network, not by the program."""

    def with_memory(self, memory: Shape) -> TransformerDecoder:
        """This decoder with cross-attention to an encoder output of shape `memory`."""
        return replace(self, memory=memory)

    def verify(self) -> None:
        """Raise ShapeError if the cross-attention depends on positions of one sequence."""
        super().verify()
        if self.cross_attention.self_attention_only:
            name = to_snake_case(type(self.cross_attention).__name__)
            raise ShapeError(
                "E0223",
                f'"{name}" depends on positions: it cannot relate a target to its source',
                at=["cross_attention"],
                helps=[
                    f'leave `cross_attention` out; `attention="{name}"` is for the target itself'
                ],
            )

    def advice(self, x: Shape) -> Iterator[LayerAdvice]:
        """The advice for any block, and a warning for cross-attention without an encoder."""
        yield from super().advice(x)
        if self.memory is None and self.cross_attention != Cross():
            yield LayerAdvice(
                code="W0607",
                message="`cross_attention` has no effect: there is no encoder before this decoder",
                at=("cross_attention",),
                helps=("leave it out, or put a `TransformerEncoder` before it",),
            )

    def cost(self, x: Shape) -> Cost:
        """`4 · (E² + E) + 2 · E · dff + dff + E + 4 · E` parameters, as an encoder block.

        A decoder after an encoder has one more attention and norm.
        """
        if self.memory is None:
            return super().cost(x)
        (time, features), (keys, memory_width) = (
            require_known_sizes(x),
            require_known_sizes(self.memory),
        )
        cross_cost = self.attention_cost(
            time, keys, features, memory_width=memory_width, mechanism=self.cross_attention
        )
        return super().cost(x) + cross_cost + self.residual_cost(time, features)

    def build(self, x: Shape) -> DecoderBlock:
        """Causal self-attention, optional cross-attention, feed-forward network."""
        features = feature_width(x)
        cross = None
        if self.memory is not None:
            cross = MultiHeadAttentionModule(
                features,
                self.num_heads,
                features // self.num_heads,
                self.cross_attention,
                num_kv_heads=self.num_kv_heads,
                memory_width=feature_width(self.memory),
                dropout=self.dropout_rate,
                bias=self.bias,
                qk_norm=self.qk_norm,
            )
        return DecoderBlock(
            self.build_attention(x, causal=True),
            cross,
            self.build_feed_forward(features),
            features,
            **self.residual_options(),
        )

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Two heads of width 3."""
        return cls(num_heads=2, d_model=6, dff=11), (7, 6)


class DecoderBlock(Module):
    """Causal self-attention, optional cross-attention and feed-forward network.

    `pre` puts norms before sublayers instead of after. `init="gpt2"` depends on `blocks`, the
    number of blocks in the network.
    """

    def __init__(
        self,
        attention: MultiHeadAttentionModule,
        cross: MultiHeadAttentionModule | None,
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
        self.cross = ResidualNorm(cross, *options) if cross is not None else None
        self.feed_forward = ResidualNorm(feed_forward, *options)
        init_block(self, init, blocks)

    def forward(
        self,
        x: Float[Tensor, "B T E"],
        mask: Bool[Tensor, "B T"] | None = None,
        memory: Float[Tensor, "B K M"] | None = None,
        memory_mask: Bool[Tensor, "B K"] | None = None,
    ) -> Float[Tensor, "B T E"]:
        """`memory` is the encoder's output. Masks are True for positions that are not padding."""
        x = self.attention(x, mask)
        if self.cross is not None:
            x = self.cross(x, memory_mask, memory)
        return self.feed_forward(x)
