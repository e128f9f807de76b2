"""Attention with heads: projections in, a mechanism in the middle, a projection out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from neural.language.shapes import Advice, Cost, Misfit, Shape
from neural.modules.attention.self import Self
from neural.modules.compiled import compiled
from neural.modules.late import Module, functional, nn
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism
from neural.modules.position import InsideAttention

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


EPSILON = 1e-6
LONG = 1024
"""Positions from which attention over all pairs is worth a warning."""


class Heads(Module):
    """Several attentions side by side, each on its own projection of the input."""

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int,
        mechanism: Mechanism,
        *,
        key_value_heads: int | None = None,
        memory_width: int | None = None,
        causal: bool = False,
        dropout: float = 0.0,
        position: InsideAttention | None = None,
        bias: bool = True,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        inner = heads * head_width
        self.head_width, self.mechanism, self.causal, self.dropout = head_width, mechanism, causal, dropout
        self.query = nn.Linear(width, inner, bias=bias)
        self.groups = heads // (key_value_heads or heads)
        self.key = nn.Linear(memory_width or width, inner // self.groups, bias=bias)
        self.value = nn.Linear(memory_width or width, inner // self.groups, bias=bias)
        self.output = nn.Linear(inner, width, bias=bias)
        self.qk_norm = qk_norm
        self.position = position
        self.learned = mechanism.learned(memory_width or width, heads, head_width)

    def forward(
        self, x: Float[Tensor, "B Q E"], mask: Bool[Tensor, "B K"] | None = None,
        memory: Float[Tensor, "B K M"] | None = None,
    ) -> Float[Tensor, "B Q E"]:  # fmt: skip
        """Look at `memory`, or at `x` itself; `mask` tells the real keys from padding."""
        source = x if memory is None else memory
        q, k, v = self.split(self.query(x)), self.split(self.key(source)), self.split(self.value(source))
        keys = k.shape[-2]
        q = placed(q, keys - q.shape[-2], self.position, self.qk_norm, EPSILON)
        k = placed(k, 0, self.position, self.qk_norm, EPSILON)
        rules = Mask(causal=self.causal, keys=mask)
        if self.position is not None:
            rules = replace(rules, bias=self.position.bias(q, keys), key_bias=self.position.key_bias(q, keys))
        if self.groups > 1:   # neighbouring query heads share keys and values (Ainslie et al., 2023)
            k, v = k.repeat_interleave(self.groups, dim=1), v.repeat_interleave(self.groups, dim=1)
        extra = self.learned(source) if self.learned is not None else None
        mixed = self.mechanism.mix(q, k, v, rules, self.dropout if self.training else 0.0, extra)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def split(self, x: Float[Tensor, "B T I"]) -> Float[Tensor, "B H T D"]:
        """The features dealt out to the heads, the first ones to the first."""
        return x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)


@compiled("neural.modules.kernels.placed")
def placed(
    x: Float[Tensor, "B H T D"], first: int, position: InsideAttention | None, normed: bool, epsilon: float
) -> Float[Tensor, "B H T D"]:
    """Queries or keys from position `first` on, as the mechanism gets them.

    Normed, each has length √D, so that scores cannot grow without end (Henry et al., 2020).
    """
    if normed:
        x = functional.rms_norm(x, (x.shape[-1],), eps=epsilon)
    return x if position is None else position.rotate(x, first)


def heads_cost(
    mechanism: Mechanism, width: int, heads: int, head_width: int, queries: int, keys: int,
    memory_width: int | None = None, key_value_heads: int | None = None, bias: bool = True, qk_norm: bool = False,
) -> Cost:  # fmt: skip
    """Four projections and what happens between them; normed queries and keys are kept beside the plain ones."""
    inner, shared, source = heads * head_width, (key_value_heads or heads) * head_width, memory_width or width
    saved = sum(inner * (queries if name == "q" else keys) for name in mechanism.saved_inputs)
    projections = Cost(
        parameters=inner * (width + bias) + 2 * shared * (source + bias) + width * (inner + bias),
        multiply_adds=2 * queries * width * inner + 2 * keys * source * shared,
        activations=queries * width + saved,
    )
    lengths = (queries * inner + keys * shared) // head_width
    norms = Cost(activations=lengths * (head_width + 1) if qk_norm else 0)
    learned = mechanism.learned_cost(source, heads, head_width, keys)
    return projections + norms + learned + mechanism.cost(heads, queries, keys, head_width)


def check_groups(heads: int, key_value_heads: int | None) -> None:
    """Groups of query heads must be of one size."""
    if key_value_heads is not None and heads % key_value_heads:
        size, left = divmod(heads, key_value_heads)
        note = f"{heads} = {key_value_heads} × {size} + {left}"
        raise Misfit(
            "E0221", "`num_kv_heads` must divide `num_heads`", at=["num_kv_heads"], notes={"num_heads": note},
            helps=["1 shares one head of keys and values among all"],
        )  # fmt: skip


def advise_length(mechanism: Mechanism, x: Shape) -> Iterator[Advice]:
    """Attention over everything grows with the square of the length."""
    time = x[0]
    if isinstance(time, int) and time > LONG and isinstance(mechanism, Self):
        yield Advice(
            code="W0603", message=f"attention over all pairs of {time:,} positions is slow and grows with the square",
            at=("attention",), helps=('`attention="localized"` looks at a window only',),
        )  # fmt: skip
