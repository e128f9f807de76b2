"""Multi-head attention (Vaswani et al., 2017) without residual connection and norm.

A layer declaration (language/layer.py): its fields are the arguments in a `.neural` program.
`shape` and `cost` describe it without torch, `build` creates the torch module, `example` is an
instance with an input shape for tests. The activations of a cost are values saved for the backward
pass. Shapes have no batch axis; E is the width of the input, its last size. A ShapeError is
reported to the user with its code; the check of later layers continues with the shape
`assumed_output`.
"""

from __future__ import annotations

from collections.abc import Iterator

from neural.language.declaration import entry_field, int_field, rate_field
from neural.language.layer import Layer
from neural.language.shapes import (
    Cost,
    LayerAdvice,
    Shape,
    ShapeError,
    feature_width,
    require_known_sizes,
    require_rank,
)
from neural.nn.attention import registry as attention
from neural.nn.attention.self import Self
from neural.nn.mechanism import Mechanism
from neural.nn.multi_head_attention import (
    MultiHeadAttentionModule,
    advise_long_sequence,
    check_kv_groups,
    multi_head_cost,
)


class MultiHeadAttention(Layer):
    """Multi-head self-attention without residual connection and norm; the width stays."""

    print_all_names = True  # `repr` writes `num_heads=8`, not `8`

    num_heads: int = int_field("Number of attention heads.")
    key_dim: int | None = int_field(
        "Width of each head; by default the input's width divided by `num_heads`.", default=None
    )
    dropout_rate: float = rate_field(
        "Dropout probability of the attention weights.", default=0.0, aliases=("dropout",)
    )
    # `Self` is softmax attention, the mechanism "self" (attention/self.py).
    attention: Mechanism = entry_field(attention, "Attention mechanism.", default=Self())

    num_kv_heads: int | None = int_field(
        "Number of key/value heads, each shared by a group of query heads; by default `num_heads`.",
        default=None,
    )

    def verify(self) -> None:
        """Raise ShapeError unless `num_kv_heads` divides `num_heads`."""
        check_kv_groups(self.num_heads, self.num_kv_heads)

    @property
    def uses_mask(self) -> bool:
        """True: the module takes the padding mask, and padding is never attended to."""
        return True

    def shape(self, x: Shape) -> Shape:
        """Unchanged: the heads are projected back to the input's width."""
        require_rank(x, 2, "a sequence, (time, features)")
        self.head_width(x)
        return x

    def head_width(self, x: Shape) -> int:
        """`key_dim`, or an equal share of the width."""
        if self.key_dim is not None:
            return self.key_dim
        if feature_width(x) % self.num_heads:
            raise ShapeError(
                "E0203",
                f"`num_heads` must divide the width {feature_width(x)} if `key_dim` is not given",
                at=["num_heads"],
                helps=["give `key_dim`, the width of one head"],
                assumed_output=x,
            )
        return feature_width(x) // self.num_heads

    def cost(self, x: Shape) -> Cost:
        """`num_heads · key_dim · (4 · E + 3) + E` parameters.

        There are fewer with `num_kv_heads`, and more if the mechanism has parameters.
        """
        time, features = require_known_sizes(x)
        return multi_head_cost(
            self.attention,
            features,
            self.num_heads,
            self.head_width(x),
            time,
            time,
            num_kv_heads=self.num_kv_heads,
        )

    def advice(self, x: Shape) -> Iterator[LayerAdvice]:
        """A warning for long sequences."""
        yield from advise_long_sequence(self.attention, x)

    def build(self, x: Shape) -> MultiHeadAttentionModule:
        """Self-attention."""
        return MultiHeadAttentionModule(
            feature_width(x),
            self.num_heads,
            self.head_width(x),
            self.attention,
            num_kv_heads=self.num_kv_heads,
            dropout=self.dropout_rate,
        )

    @classmethod
    def example(cls) -> tuple[Layer, Shape]:
        """Heads wider than their share of the input."""
        return cls(num_heads=2, key_dim=3), (7, 5)
