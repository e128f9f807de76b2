"""A transformer block: what encoder and decoder share, declared and built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isqrt
from typing import TYPE_CHECKING, Any, Self

from neural.language.declaration import choice, count, entry, flag, rate
from neural.language.layer import Layer
from neural.language.shapes import Advice, Cost, Misfit, Shape, need_rank, numbers, show, width
from neural.modules.activations import NAMES, activation, kept
from neural.modules.attention import registry as attention
from neural.modules.attention.self import Self as SelfAttention
from neural.modules.heads import Heads, advise_length, check_groups, heads_cost
from neural.modules.initial import INITS
from neural.modules.late import Module, nn
from neural.modules.layers.layer_normalization import LayerNormalization
from neural.modules.layers.rms_normalization import RMSNormalization
from neural.modules.mechanism import Mechanism
from neural.modules.position import InsideAttention, Position
from neural.modules.positions import registry as positions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

USUAL_HEADS = (32, 128)
"""Head widths outside this are worth a note; the guide's rule of thumb is 64."""


SMALL = 256
"""Below this width, heads are narrow because there is little to share."""


class Block(Layer):
    """Attention and a feed-forward part, each with a norm before it and a residual around it."""

    names_all = True

    num_heads: int = count("How many attentions side by side; must divide `d_model`.")
    d_model: int | None = count("Width of the block: the input's.", default=None)
    dff: int | None = count(
        "Width inside the feed-forward part; by default 4 × `d_model`.", default=None, aliases=("ff_dim",)
    )
    dropout_rate: float = rate(
        "Share dropped while training, of attention weights and inside the feed-forward part.",
        default=0.0, aliases=("dropout",),
    )  # fmt: skip
    attention: Mechanism = entry(attention, "Who looks at whom, and how much.", default=SelfAttention())
    positional: Position | None = entry(
        positions, "How positions are told; by default sinusoidal, added before the first block.", default=None
    )
    activation: str = choice(NAMES, "Inside the feed-forward part.", default="relu", noun="activation", code="E0213")
    norm: str = choice(("pre", "post"), "Where the norms stand.", default="pre")
    final_norm: bool = flag("One more norm after the last copy.", default=False)

    num_kv_heads: int | None = count(
        "Heads of keys and values, each shared by a group of query heads; by default as many.", default=None
    )
    bias: bool = flag("Learned numbers added in all linear maps and layer norms.", default=True)
    normalization: str = choice(
        ("layer", "rms"), "The norms: mean and variance, or the mean square alone.", default="layer"
    )
    qk_norm: bool = flag("Bring queries and keys to one length before positions and scores.", default=False)
    dropout_at: str = choice(
        ("inside", "residual"),
        "Beside the attention weights: inside the feed-forward part, or what each part adds.", default="inside",
    )  # fmt: skip
    init: str = choice(
        INITS, 'How the weights begin; "zero": the last map of each part, so that a block first does nothing.',
        default="torch",
    )  # fmt: skip

    blocks: int = 1
    """How many blocks add to the same stream; set by the network, not by the program."""

    @property
    def uses_mask(self) -> bool:
        """Padding is not looked at."""
        return True

    def verify(self) -> None:
        """Heads share the width evenly, and groups of heads are of one size."""
        check_groups(self.num_heads, self.num_kv_heads)
        if self.d_model is not None:
            self._divides(self.d_model)

    def _divides(self, features: int) -> None:
        share, left = divmod(features, self.num_heads)
        if left:
            near = min(divisors(features), key=lambda one: (abs(one - self.num_heads), -one))
            said = ", the usual size" if features // near == 64 else ""
            raise Misfit(
                "E0203", "`num_heads` must divide `d_model`", at=["num_heads"],
                notes={"d_model": f"{features} = {self.num_heads} × {share} + {left}"},
                helps=[f"{near} head{'s give' if near > 1 else ' gives'} a head width of {features // near}{said}"],
            )  # fmt: skip

    def shape(self, x: Shape) -> Shape:
        """Unchanged."""
        features = self.d_model if self.d_model is not None else width(x)
        need_rank(x, 2, "a sequence, (time, features)", assume=("T", features))
        if width(x) != features:
            raise Misfit(
                "E0301", f"`d_model` is {features}, but {width(x)} features arrive: {show(x)}", at=["d_model"],
                assume=(x[0], features), helps=[f"`d_model={width(x)}`, or a `Dense({features})` before this"],
            )  # fmt: skip
        if self.d_model is None:
            self._divides(features)
        if self.positional is not None:
            self.positional.fits(x, self.num_heads, features // self.num_heads)
        return x

    def cost(self, x: Shape) -> Cost:
        """Attention, feed-forward part, norms: `4 · (E² + E) + 2 · E · dff + dff + E + 4 · E` parameters.

        That is with biases and layer norms, and without what a mechanism or positions learn themselves.
        """
        time, features = numbers(x)
        inside = self.positional if self.positional is not None and not self.positional.adds else None
        position = Cost(parameters=inside.parameters(x, self.num_heads) if inside else 0)
        forward = self._feed_forward_cost(time, features)
        return self.attention_cost(time, time, features) + position + forward + self.around_cost(time, features) * 2

    def attention_cost(
        self, queries: int, keys: int, features: int, memory_width: int | None = None,
        mechanism: Mechanism | None = None,
    ) -> Cost:
        """Of one attention, to the block's own input or to a memory, which may have a mechanism of its own."""
        return heads_cost(
            mechanism or self.attention, features, self.num_heads, features // self.num_heads, queries, keys,
            memory_width=memory_width, key_value_heads=self.num_kv_heads, bias=self.bias, qk_norm=self.qk_norm,
        )  # fmt: skip

    def around_cost(self, time: int, features: int) -> Cost:
        """Of what stands around a part: its norm, and what the result of dropout was multiplied with."""
        norm = self.last_norm().cost((time, features))
        return norm + Cost(activations=time * features if self.dropout_rate and self.dropout_at == "residual" else 0)

    def _feed_forward_cost(self, time: int, features: int) -> Cost:
        """Two linear maps; dropout between them keeps its result and what it was multiplied with."""
        inner = self.dff or 4 * features
        dropped = self.dropout_rate and self.dropout_at == "inside"
        between = kept(self.activation) * inner + (2 * inner if dropped else 0)
        return Cost(
            parameters=2 * features * inner + self.bias * (inner + features),
            multiply_adds=2 * time * features * inner,
            activations=time * (between + features),
        )

    def advice(self, x: Shape) -> Iterator[Advice]:
        """Head width, length, order, dropout."""
        share = width(x) // self.num_heads
        if not USUAL_HEADS[0] <= share <= USUAL_HEADS[1] and width(x) >= SMALL:
            usual = max(1, round(width(x) / 64))
            yield Advice(
                code="N0704", message=f"heads are {share} wide; about 64 is usual", at=("num_heads",),
                helps=(f"`num_heads={usual}` gives {width(x) // usual}",) if width(x) % usual == 0 else (),
            )  # fmt: skip
        if self.dropout_rate > 0.5:
            yield Advice(
                code="W0604", message=f"dropping {self.dropout_rate:.0%} leaves little to learn from",
                at=("dropout_rate",), helps=("0.1 is usual, 0.2 to 0.3 for large models",),
            )  # fmt: skip
        if self.positional is not None and not self.positional.adds and type(self.positional).__name__ == "None_":
            message = "without positions, attention does not know the order"
            yield Advice(code="N0705", message=message, at=("positional",))
        yield from advise_length(self.attention, x)

    def heads(self, x: Shape, *, causal: bool) -> Heads:
        """The attention of the block over its own input."""
        features = width(x)
        inside: InsideAttention | None = None
        if self.positional is not None and not self.positional.adds:
            inside = self.positional.build(x, self.num_heads, causal)
        return Heads(
            features, self.num_heads, features // self.num_heads, self.attention,
            key_value_heads=self.num_kv_heads, causal=causal, dropout=self.dropout_rate, position=inside,
            bias=self.bias, qk_norm=self.qk_norm,
        )  # fmt: skip

    def feed_forward(self, features: int) -> FeedForward:
        """The part that thinks every position over alone."""
        dropped = self.dropout_rate if self.dropout_at == "inside" else 0.0
        return FeedForward(features, self.dff or 4 * features, self.activation, dropped, bias=self.bias)

    def around(self) -> dict[str, Any]:
        """What stands around each part, and how the weights begin."""
        return {
            "pre": self.norm == "pre", "normalization": self.normalization, "bias": self.bias,
            "dropout": self.dropout_rate if self.dropout_at == "residual" else 0.0,
            "init": self.init, "blocks": self.blocks,
        }  # fmt: skip

    def last_norm(self) -> Layer:
        """A norm of the block's kind: what `final_norm` adds."""
        return RMSNormalization() if self.normalization == "rms" else LayerNormalization(bias=self.bias)

    def among(self, blocks: int) -> Self:
        """The same block, one of so many; it matters where the weights begin by it."""
        return replace(self, blocks=blocks) if self.init == "gpt2" else self


def divisors(number: int) -> list[int]:
    """All whole numbers that divide it."""
    small = [one for one in range(1, isqrt(number) + 1) if number % one == 0]
    return [*small, *(number // one for one in small)]


class FeedForward(Module):
    """Two linear maps with an activation between them, at every position alike."""

    def __init__(self, width: int, inner: int, activation_name: str, dropout: float, bias: bool = True) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner, bias=bias)
        self.activation = activation(activation_name)
        self.dropout = nn.Dropout(dropout)
        self.down = nn.Linear(inner, width, bias=bias)

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        """Up, activation, down."""
        return self.down(self.dropout(self.activation(self.up(x))))


class ResidualNorm(Module):
    """A norm before (or after) a part, and the way around it."""

    def __init__(
        self, part: nn.Module, width: int, pre: bool, normalization: str, bias: bool, dropout: float
    ) -> None:
        super().__init__()
        self.part = part
        self.norm = nn.RMSNorm(width, eps=1e-6) if normalization == "rms" else nn.LayerNorm(width, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.pre = pre

    def forward(
        self, x: Float[Tensor, "B T E"], *beside: Bool[Tensor, "B T"] | Float[Tensor, "B K M"] | None
    ) -> Float[Tensor, "B T E"]:
        """x + part(norm(x)), or norm(x + part(x))."""
        if self.pre:
            return x + self.dropout(self.part(self.norm(x), *beside))
        return self.norm(x + self.dropout(self.part(x, *beside)))
