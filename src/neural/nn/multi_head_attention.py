"""Multi-head attention: input projections, a mechanism, an output projection.

A mechanism (mechanism.py) computes attention from queries, keys and values of each head, e.g. by a
softmax of scaled dot products. It may have a learned module, whose output it gets as `extra`.
The memory is the attended sequence of cross-attention, the encoder's output.

Axes: B batch, H heads, Q queries, K keys, T time, D head width, E and M width of input and memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

from neural.language.shapes import Cost, LayerAdvice, Shape, ShapeError
from neural.nn.attention.self import Self
from neural.nn.kernel_dispatch import use_kernel
from neural.nn.lazy_torch import Module, functional, nn
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism
from neural.nn.position import AttentionPositions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

QK_NORM_EPSILON = 1e-6
"""Epsilon of the RMS norm of queries and keys."""
LONG_SEQUENCE_LENGTH = 1024
"""Length above which full attention gives a warning."""


class MultiHeadAttentionModule(Module):
    """Multi-head attention with any mechanism; optionally groups of query heads share keys.

    `width` is the width of the input, `memory_width` that of the memory in cross-attention,
    `position` a positional encoding that acts inside attention (position.py).
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        head_width: int,
        mechanism: Mechanism,
        *,
        num_kv_heads: int | None = None,
        memory_width: int | None = None,
        causal: bool = False,
        dropout: float = 0.0,
        position: AttentionPositions | None = None,
        bias: bool = True,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        inner = num_heads * head_width
        self.head_width, self.mechanism, self.causal, self.dropout = (
            head_width,
            mechanism,
            causal,
            dropout,
        )
        self.query = nn.Linear(width, inner, bias=bias)
        self.groups = num_heads // (num_kv_heads or num_heads)  # query heads per key/value head
        self.key = nn.Linear(memory_width or width, inner // self.groups, bias=bias)
        self.value = nn.Linear(memory_width or width, inner // self.groups, bias=bias)
        self.output = nn.Linear(inner, width, bias=bias)
        self.qk_norm = qk_norm
        self.position = position
        self.learned = mechanism.build_learned(memory_width or width, num_heads, head_width)

    def forward(
        self,
        x: Float[Tensor, "B Q E"],
        mask: Bool[Tensor, "B K"] | None = None,
        memory: Float[Tensor, "B K M"] | None = None,
    ) -> Float[Tensor, "B Q E"]:
        """Attention to `memory`, or to `x` itself; `mask` is True for keys that are not padding."""
        source = x if memory is None else memory
        q, k, v = (
            self.split_heads(self.query(x)),
            self.split_heads(self.key(source)),
            self.split_heads(self.value(source)),
        )
        keys = k.shape[-2]
        # The last query has the position of the last key.
        q = normalize_and_rotate(
            q, keys - q.shape[-2], self.position, self.qk_norm, QK_NORM_EPSILON
        )
        k = normalize_and_rotate(k, 0, self.position, self.qk_norm, QK_NORM_EPSILON)
        attention_mask = Mask(causal=self.causal, keys=mask)
        if self.position is not None:
            attention_mask = replace(
                attention_mask,
                bias=self.position.bias(q, keys),
                key_bias=self.position.key_bias(q, keys),
            )
        if self.groups > 1:  # neighbouring query heads share keys and values (Ainslie et al., 2023)
            k, v = k.repeat_interleave(self.groups, dim=1), v.repeat_interleave(self.groups, dim=1)
        extra = self.learned(source) if self.learned is not None else None
        dropout = self.dropout if self.training else 0.0
        attended = self.mechanism.attend(q, k, v, attention_mask, dropout, extra)
        return self.output(attended.transpose(1, 2).flatten(2))

    def split_heads(self, x: Float[Tensor, "B T I"]) -> Float[Tensor, "B H T D"]:
        """Features split into heads; the first features belong to the first head."""
        return x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)


def _load_kernel() -> ModuleType:
    """The compiled form of `normalize_and_rotate`, imported at its first use."""
    from neural.nn.kernels import normalize_rotate

    return normalize_rotate


@use_kernel(_load_kernel)
def normalize_and_rotate(
    x: Float[Tensor, "B H T D"],
    offset: int,
    position: AttentionPositions | None,
    normalize: bool,
    epsilon: float,
) -> Float[Tensor, "B H T D"]:
    """Queries or keys after the query-key norm and rotary positions; the first is at `offset`.

    With `normalize` each vector gets the length √D, which bounds the scores (Henry et al., 2020).
    """
    if normalize:
        x = functional.rms_norm(x, (x.shape[-1],), eps=epsilon)
    return x if position is None else position.rotate(x, offset)


def multi_head_cost(
    mechanism: Mechanism,
    width: int,
    num_heads: int,
    head_width: int,
    queries: int,
    keys: int,
    memory_width: int | None = None,
    num_kv_heads: int | None = None,
    bias: bool = True,
    qk_norm: bool = False,
) -> Cost:
    """Cost of the projections, the mechanism, its learned module and the query-key norm.

    `queries` and `keys` are numbers of positions; other arguments as in `MultiHeadAttentionModule`.
    Activations are values saved for the backward pass: the query-key norm saves its inputs and one
    factor per vector.
    """
    # Widths of all query heads together, of all key/value heads together, of the attended sequence.
    inner, shared, source = (
        num_heads * head_width,
        (num_kv_heads or num_heads) * head_width,
        memory_width or width,
    )
    saved = sum(inner * (queries if name == "q" else keys) for name in mechanism.saved_inputs)
    projections = Cost(
        parameters=inner * (width + bias) + 2 * shared * (source + bias) + width * (inner + bias),
        multiply_adds=2 * queries * width * inner + 2 * keys * source * shared,
        activations=queries * width + saved,
    )
    num_vectors = (queries * inner + keys * shared) // head_width
    norms = Cost(activations=num_vectors * (head_width + 1) if qk_norm else 0)
    learned = mechanism.learned_cost(source, num_heads, head_width, keys)
    return projections + norms + learned + mechanism.cost(num_heads, queries, keys, head_width)


def check_kv_groups(num_heads: int, num_kv_heads: int | None) -> None:
    """Raise ShapeError unless `num_kv_heads` divides `num_heads`: all groups have one size."""
    if num_kv_heads is not None and num_heads % num_kv_heads:
        size, left = divmod(num_heads, num_kv_heads)
        note = f"{num_heads} = {num_kv_heads} × {size} + {left}"
        raise ShapeError(
            "E0221",
            "`num_kv_heads` must divide `num_heads`",
            at=["num_kv_heads"],
            notes={"num_heads": note},
            helps=["1 shares one head of keys and values among all query heads"],
        )


def advise_long_sequence(mechanism: Mechanism, x: Shape) -> Iterator[LayerAdvice]:
    """Yield a warning for full attention over long sequences: its cost is quadratic."""
    time = x[0]
    if isinstance(time, int) and time > LONG_SEQUENCE_LENGTH and isinstance(mechanism, Self):
        yield LayerAdvice(
            code="W0603",
            message=f"attention over all pairs of {time:,} positions is slow: "
            "its cost is quadratic",
            at=("attention",),
            helps=('`attention="localized"` attends to a window only',),
        )
