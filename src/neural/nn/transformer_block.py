"""Transformer block: declaration and modules shared by encoder and decoder.

The declaration (`TransformerBlock`) has the arguments of a block in a `.neural` program as fields,
each with its help text. It checks them, computes shape and cost without torch, and builds the
modules. A mechanism (mechanism.py) computes attention from queries, keys and values; an additive
positional encoding (position.py) is not part of a block. Shapes `x` are (time, features).
Activations of a cost are values saved for the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isqrt
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from neural.language.declaration import bool_field, choice_field, entry_field, int_field, rate_field
from neural.language.layer import Layer
from neural.language.shapes import (
    Cost,
    LayerAdvice,
    Shape,
    ShapeError,
    feature_width,
    format_shape,
    require_known_sizes,
    require_rank,
)
from neural.nn.activations import ACTIVATION_NAMES, build_activation, saved_values_per_output
from neural.nn.attention import registry as attention
from neural.nn.attention.self import Self as SelfAttention
from neural.nn.initializers import INITIALIZERS
from neural.nn.kernel_dispatch import use_kernel
from neural.nn.layers.layer_normalization import LayerNormalization
from neural.nn.layers.rms_normalization import RMSNormalization
from neural.nn.lazy_torch import Module, nn
from neural.nn.mechanism import Mechanism
from neural.nn.multi_head_attention import (
    MultiHeadAttentionModule,
    advise_long_sequence,
    check_kv_groups,
    multi_head_cost,
)
from neural.nn.position import AttentionPositions, Position
from neural.nn.positions import registry as positions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

USUAL_HEAD_WIDTH = 64
USUAL_HEAD_WIDTHS = (32, 128)
"""Smallest and largest head width without a note in `neural check`; 64 is the rule of thumb."""
MIN_WIDTH_FOR_HEAD_ADVICE = 256
"""Smallest `d_model` with that note: narrower models have narrow heads."""


class TransformerBlock(Layer):
    """Attention and feed-forward network, each with a norm and a residual connection."""

    print_all_names = True  # `repr` writes `num_heads=8`, not `8`

    num_heads: int = int_field("Number of attention heads; must divide `d_model`.")
    d_model: int | None = int_field("Width of the block: the width of its input.", default=None)
    dff: int | None = int_field(
        "Hidden width of the feed-forward network; by default 4 × `d_model`.",
        default=None,
        aliases=("ff_dim",),
    )
    dropout_rate: float = rate_field(
        "Dropout probability of attention weights and inside the feed-forward network.",
        default=0.0,
        aliases=("dropout",),
    )
    attention: Mechanism = entry_field(attention, "Attention mechanism.", default=SelfAttention())
    positional: Position | None = entry_field(
        positions,
        "Positional encoding; by default sinusoidal, added before the first block.",
        default=None,
    )
    activation: str = choice_field(
        ACTIVATION_NAMES,
        "Activation of the feed-forward network.",
        default="relu",
        value_name="activation",
        code="E0213",
    )
    norm: str = choice_field(
        ("pre", "post"), "Norm before each sublayer or after its residual addition.", default="pre"
    )
    final_norm: bool = bool_field("Add a norm after the last block.", default=False)

    num_kv_heads: int | None = int_field(
        "Number of key/value heads, each shared by a group of query heads; by default `num_heads`.",
        default=None,
    )
    bias: bool = bool_field("Biases in all linear maps and layer norms.", default=True)
    normalization: str = choice_field(
        ("layer", "rms"), "Layer normalization or root-mean-square normalization.", default="layer"
    )
    qk_norm: bool = bool_field(
        "Normalize queries and keys before positions and scores.", default=False
    )
    dropout_at: str = choice_field(
        ("inside", "residual"),
        "Besides attention weights: inside the feed-forward network, or each sublayer's output.",
        default="inside",
    )
    init: str = choice_field(
        INITIALIZERS,
        'Weight initialization; "zero": the last map of each sublayer, so that a block starts as '
        "the identity.",
        default="torch",
    )

    blocks: int = 1
    """Number of blocks in the residual stream; set by `with_block_count`, not by the program."""

    @property
    def uses_mask(self) -> bool:
        """True: the modules take the padding mask, and padding is never attended to."""
        return True

    def verify(self) -> None:
        """Raise ShapeError unless `num_heads` divides `d_model`, and `num_kv_heads` `num_heads`."""
        check_kv_groups(self.num_heads, self.num_kv_heads)
        if self.d_model is not None:
            self._check_heads_divide(self.d_model)

    def _check_heads_divide(self, features: int) -> None:
        """Raise ShapeError unless `num_heads` divides `features`; suggests the closest divisor."""
        head_width, remainder = divmod(features, self.num_heads)
        if remainder:
            closest = min(
                find_divisors(features),
                key=lambda divisor: (abs(divisor - self.num_heads), -divisor),
            )
            size_note = ", the usual size" if features // closest == USUAL_HEAD_WIDTH else ""
            verb = "s give" if closest > 1 else " gives"
            raise ShapeError(
                "E0203",
                "`num_heads` must divide `d_model`",
                at=["num_heads"],
                notes={"d_model": f"{features} = {self.num_heads} × {head_width} + {remainder}"},
                helps=[f"{closest} head{verb} a head width of {features // closest}{size_note}"],
            )

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        features = self.d_model if self.d_model is not None else feature_width(x)
        require_rank(x, 2, "a sequence, (time, features)", assumed_output=("T", features))
        if feature_width(x) != features:
            raise ShapeError(
                "E0301",
                f"`d_model` is {features}, but {feature_width(x)} features arrive: "
                f"{format_shape(x)}",
                at=["d_model"],
                assumed_output=(x[0], features),
                helps=[f"`d_model={feature_width(x)}`, or a `Dense({features})` before this"],
            )
        if self.d_model is None:
            self._check_heads_divide(features)
        if self.positional is not None:
            self.positional.validate(x, self.num_heads, features // self.num_heads)
        return x

    def cost(self, x: Shape) -> Cost:
        """`4 · (E² + E) + 2 · E · dff + dff + E + 4 · E` parameters, where E is `d_model`.

        The formula is for layer norms with biases, `num_kv_heads` = `num_heads`, and a mechanism
        and positions without parameters.
        """
        time, features = require_known_sizes(x)
        positional = Cost()
        if self.positional is not None and not self.positional.is_additive:
            positional = Cost(parameters=self.positional.count_parameters(x, self.num_heads))
        return (
            self.attention_cost(time, time, features)
            + positional
            + self._feed_forward_cost(time, features)
            + self.residual_cost(time, features) * 2
        )

    def attention_cost(
        self,
        queries: int,
        keys: int,
        features: int,
        memory_width: int | None = None,
        mechanism: Mechanism | None = None,
    ) -> Cost:
        """Cost of one attention: to the block's input, or to an encoder's output (the memory).

        `queries` and `keys` are numbers of positions; `mechanism` is by default that of the block.
        """
        return multi_head_cost(
            mechanism or self.attention,
            features,
            self.num_heads,
            features // self.num_heads,
            queries,
            keys,
            memory_width=memory_width,
            num_kv_heads=self.num_kv_heads,
            bias=self.bias,
            qk_norm=self.qk_norm,
        )

    def residual_cost(self, time: int, features: int) -> Cost:
        """Cost of one sublayer's norm, and of the mask that residual dropout saves."""
        norm = self.create_norm().cost((time, features))
        return norm + Cost(
            activations=time * features
            if self.dropout_rate and self.dropout_at == "residual"
            else 0
        )

    def _feed_forward_cost(self, time: int, features: int) -> Cost:
        """Cost of the two linear maps; dropout between them saves its output and its mask."""
        inner = self.dff or 4 * features
        has_dropout = self.dropout_rate and self.dropout_at == "inside"
        saved_inner = saved_values_per_output(self.activation) * inner
        saved_inner += 2 * inner if has_dropout else 0
        return Cost(
            parameters=2 * features * inner + self.bias * (inner + features),
            multiply_adds=2 * time * features * inner,
            activations=time * (saved_inner + features),
        )

    def advice(self, x: Shape) -> Iterator[LayerAdvice]:
        """Notes on head width, dropout, missing positions and long sequences."""
        width = feature_width(x)
        head_width = width // self.num_heads
        if (
            not USUAL_HEAD_WIDTHS[0] <= head_width <= USUAL_HEAD_WIDTHS[1]
            and width >= MIN_WIDTH_FOR_HEAD_ADVICE
        ):
            usual_heads = max(1, round(width / USUAL_HEAD_WIDTH))
            yield LayerAdvice(
                code="N0704",
                message=f"heads are {head_width} wide; about 64 is usual",
                at=("num_heads",),
                helps=(f"`num_heads={usual_heads}` gives {width // usual_heads}",)
                if width % usual_heads == 0
                else (),
            )
        if self.dropout_rate > 0.5:
            yield LayerAdvice(
                code="W0604",
                message=f"dropping {self.dropout_rate:.0%} leaves little to learn from",
                at=("dropout_rate",),
                helps=("0.1 is usual, 0.2 to 0.3 for large models",),
            )
        if (
            self.positional is not None
            and not self.positional.is_additive
            and type(self.positional).__name__ == "None_"  # `positional="none"`
        ):
            message = "without positions, attention ignores the order"
            yield LayerAdvice(code="N0705", message=message, at=("positional",))
        yield from advise_long_sequence(self.attention, x)

    def build_attention(self, x: Shape, *, causal: bool) -> MultiHeadAttentionModule:
        """The block's self-attention module."""
        features = feature_width(x)
        positions: AttentionPositions | None = None
        if self.positional is not None and not self.positional.is_additive:
            positions = self.positional.build(x, self.num_heads, causal)
        return MultiHeadAttentionModule(
            features,
            self.num_heads,
            features // self.num_heads,
            self.attention,
            num_kv_heads=self.num_kv_heads,
            causal=causal,
            dropout=self.dropout_rate,
            position=positions,
            bias=self.bias,
            qk_norm=self.qk_norm,
        )

    def build_feed_forward(self, features: int) -> FeedForward:
        """The block's feed-forward network, applied to each position."""
        dropout = self.dropout_rate if self.dropout_at == "inside" else 0.0
        return FeedForward(
            features, self.dff or 4 * features, self.activation, dropout, bias=self.bias
        )

    def residual_options(self) -> dict[str, Any]:
        """Keyword arguments of `EncoderBlock` and `DecoderBlock` for norms, dropout and `init`."""
        return {
            "pre": self.norm == "pre",
            "normalization": self.normalization,
            "bias": self.bias,
            "dropout": self.dropout_rate if self.dropout_at == "residual" else 0.0,
            "init": self.init,
            "blocks": self.blocks,
        }

    def create_norm(self) -> Layer:
        """The norm layer of this kind of block; `final_norm` adds one after the last block."""
        return (
            RMSNormalization()
            if self.normalization == "rms"
            else LayerNormalization(bias=self.bias)
        )

    def with_block_count(self, num_blocks: int) -> Self:
        """This block with `num_blocks` as depth of the network, which init="gpt2" depends on."""
        return replace(self, blocks=num_blocks) if self.init == "gpt2" else self


def find_divisors(number: int) -> list[int]:
    """All divisors of a positive number; if it is a square, its root occurs twice."""
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return [*small, *(number // divisor for divisor in small)]


class FeedForward(Module):
    """Two linear maps with an activation between them, applied to each position."""

    def __init__(
        self, width: int, inner_width: int, activation_name: str, dropout: float, bias: bool = True
    ) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner_width, bias=bias)
        self.activation = build_activation(activation_name)
        self.dropout = nn.Dropout(dropout)
        self.down = nn.Linear(inner_width, width, bias=bias)

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        """down(dropout(activation(up(x))))."""
        return self.down(self.dropout(self.activation(self.up(x))))


class ResidualNorm(Module):
    """A sublayer with a norm (before or after it) and a residual connection."""

    def __init__(
        self,
        sublayer: nn.Module,
        width: int,
        pre: bool,
        normalization: str,
        bias: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.sublayer = sublayer
        self.norm = (
            nn.RMSNorm(width, eps=1e-6)  # the default epsilon of `RMSNormalization`
            if normalization == "rms"
            else nn.LayerNorm(width, bias=bias)
        )
        self.dropout = nn.Dropout(dropout)
        self.pre = pre

    def forward(
        self,
        x: Float[Tensor, "B T E"],
        *extra_inputs: Bool[Tensor, "B T"] | Float[Tensor, "B K M"] | None,
    ) -> Float[Tensor, "B T E"]:
        """x + sublayer(norm(x)) with `pre`, else norm(x + sublayer(x)).

        `extra_inputs` are passed to the sublayer: a padding mask and, in cross-attention, the
        encoder's output.
        """
        if self.pre:
            return x + self.dropout(self.sublayer(apply_norm(self.norm, x), *extra_inputs))
        return apply_norm(self.norm, x + self.dropout(self.sublayer(x, *extra_inputs)))


def _load_kernel() -> ModuleType:
    """The compiled form of `apply_norm` for RMS norms, imported at its first use."""
    from neural.nn.kernels import rms_norm

    return rms_norm


@use_kernel(_load_kernel)
def apply_norm(norm: nn.Module, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
    """The output of a norm layer."""
    return norm(x)
