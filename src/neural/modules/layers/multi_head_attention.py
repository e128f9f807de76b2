"""Multi-head attention (Vaswani et al., 2017) on its own: no residual, no norm."""

from __future__ import annotations

from collections.abc import Iterator

from neural.language.declaration import count, entry, rate
from neural.language.layer import Layer
from neural.language.shapes import Advice, Cost, Misfit, Shape, need_rank, numbers, width
from neural.modules.attention import registry as attention
from neural.modules.attention.self import Self
from neural.modules.heads import Heads, advise_length, check_groups, heads_cost
from neural.modules.mechanism import Mechanism


class MultiHeadAttention(Layer):
    """Every position looks at the others, in several ways at once; the width stays."""

    names_all = True

    num_heads: int = count("How many attentions side by side.")
    key_dim: int | None = count("Width of each head; by default the input's width over `num_heads`.", default=None)
    dropout_rate: float = rate(
        "Share of the attention weights dropped while training.", default=0.0, aliases=("dropout",)
    )
    attention: Mechanism = entry(attention, "Who looks at whom, and how much.", default=Self())

    num_kv_heads: int | None = count(
        "Heads of keys and values, each shared by a group of query heads; by default as many.", default=None
    )

    def verify(self) -> None:
        """Groups of heads are of one size."""
        check_groups(self.num_heads, self.num_kv_heads)

    @property
    def uses_mask(self) -> bool:
        """Padding is not looked at."""
        return True

    def shape(self, x: Shape) -> Shape:
        """Unchanged: the heads are projected back to the input's width."""
        need_rank(x, 2, "a sequence, (time, features)")
        self.head_width(x)
        return x

    def head_width(self, x: Shape) -> int:
        """As said, or an even share."""
        if self.key_dim is not None:
            return self.key_dim
        if width(x) % self.num_heads:
            raise Misfit(
                "E0203", f"`num_heads` must divide the width {width(x)} where `key_dim` is not given", at=["num_heads"],
                helps=["give `key_dim`, the width of one head"], assume=x,
            )  # fmt: skip
        return width(x) // self.num_heads

    def cost(self, x: Shape) -> Cost:
        """Four projections and the attention between them: `num_heads · key_dim · (4 · E + 3) + E` parameters.

        Fewer with `num_kv_heads`; more where the mechanism learns something itself.
        """
        time, features = numbers(x)
        return heads_cost(
            self.attention, features, self.num_heads, self.head_width(x), time, time, key_value_heads=self.num_kv_heads
        )

    def advice(self, x: Shape) -> Iterator[Advice]:
        """Long sequences."""
        yield from advise_length(self.attention, x)

    def build(self, x: Shape) -> Heads:
        """Heads over the input itself."""
        return Heads(
            width(x), self.num_heads, self.head_width(x), self.attention,
            key_value_heads=self.num_kv_heads, dropout=self.dropout_rate,
        )  # fmt: skip

    @classmethod
    def tiny(cls) -> tuple[Layer, Shape]:
        """Heads wider than their share."""
        return cls(num_heads=2, key_dim=3), (7, 5)
