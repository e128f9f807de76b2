"""The decoder block of the transformer (Vaswani et al., 2017), pre-norm; alone it is GPT's (Radford et al., 2019)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.core.names import snake
from neural.language.declaration import entry
from neural.language.layer import Layer, Role
from neural.language.shapes import Advice, Cost, Misfit, Shape, numbers, width
from neural.modules.attention import registry as attention
from neural.modules.attention.cross import Cross
from neural.modules.block import Block, FeedForward, ResidualNorm
from neural.modules.heads import Heads
from neural.modules.initial import start_block
from neural.modules.late import Module
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class TransformerDecoder(Block):
    """Every position looks at itself and what came before; after an encoder, also at what the encoder made."""

    role: ClassVar[Role] = "decoder"

    cross_attention: Mechanism = entry(
        attention,
        "How the decoder looks at the encoder's output; mechanisms that depend on positions are refused.",
        default=Cross(),
    )

    memory: Shape | None = None
    """What an encoder before this one made; set by the network, not by the program."""

    def after_encoder(self, memory: Shape) -> TransformerDecoder:
        """The same decoder, looking at the encoder's output as well."""
        return replace(self, memory=memory)

    def verify(self) -> None:
        """Cross-attention relates two sequences, whose positions have nothing to do with each other."""
        super().verify()
        if self.cross_attention.self_attention_only:
            name = snake(type(self.cross_attention).__name__)
            raise Misfit(
                "E0223",
                f'"{name}" depends on positions: it cannot relate a target to its source',
                at=["cross_attention"],
                helps=[f'leave `cross_attention` out; `attention="{name}"` is for the target itself'],
            )

    def advice(self, x: Shape) -> Iterator[Advice]:
        """As of any block; and cross-attention without a source."""
        yield from super().advice(x)
        if self.memory is None and self.cross_attention != Cross():
            yield Advice(
                code="W0607",
                message="`cross_attention` has no effect: no encoder stands before this decoder",
                at=("cross_attention",),
                helps=("leave it out, or put a `TransformerEncoder` before it",),
            )

    def cost(self, x: Shape) -> Cost:
        """As an encoder's, `4 · (E² + E) + 2 · E · dff + dff + E + 4 · E` parameters.

        With an encoder before it, one attention and norm more.
        """
        if self.memory is None:
            return super().cost(x)
        (time, features), (keys, source) = numbers(x), numbers(self.memory)
        across = self.attention_cost(
            time, keys, features, memory_width=source, mechanism=self.cross_attention
        )
        return super().cost(x) + across + self.around_cost(time, features)

    def build(self, x: Shape) -> Decoder:
        """Attention back in time, attention to the memory if there is one, feed-forward part."""
        features = width(x)
        cross = None
        if self.memory is not None:
            cross = Heads(
                features, self.num_heads, features // self.num_heads, self.cross_attention,
                key_value_heads=self.num_kv_heads, memory_width=width(self.memory), dropout=self.dropout_rate,
                bias=self.bias, qk_norm=self.qk_norm,
            )  # fmt: skip
        return Decoder(self.heads(x, causal=True), cross, self.feed_forward(features), features, **self.around())

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Two heads of three."""
        return cls(num_heads=2, d_model=6, dff=11), (7, 6)


class Decoder(Module):
    """Causal self-attention, attention to an encoder's output if there is one, a feed-forward part."""

    def __init__(
        self, attention: Heads, cross: Heads | None, feed_forward: FeedForward, width: int, pre: bool,
        normalization: str = "layer", bias: bool = True, dropout: float = 0.0, init: str = "torch", blocks: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        around = (width, pre, normalization, bias, dropout)
        self.attention = ResidualNorm(attention, *around)
        self.cross = ResidualNorm(cross, *around) if cross is not None else None
        self.feed_forward = ResidualNorm(feed_forward, *around)
        start_block(self, init, blocks)

    def forward(
        self,
        x: Float[Tensor, "B T E"],
        mask: Bool[Tensor, "B T"] | None = None,
        memory: Float[Tensor, "B K M"] | None = None,
        memory_mask: Bool[Tensor, "B K"] | None = None,
    ) -> Float[Tensor, "B T E"]:
        """`mask` tells real positions from padding, `memory_mask` those of the encoder's output."""
        x = self.attention(x, mask)
        if self.cross is not None:
            x = self.cross(x, memory_mask, memory)
        return self.feed_forward(x)
