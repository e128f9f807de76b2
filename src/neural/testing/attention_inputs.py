"""Inputs of the attention rules: queries, keys, values, masks, and the expected visibility.

The rules are in attention_rules.py. A mechanism is a kind of attention, such as softmax or linear
attention. A mask (nn/mask.py) combines several rules, such as causal and padding; a key is visible
to a query if none of them hides it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxtyping import Bool
    from torch import Tensor

# Batch, heads, queries, keys, width of queries and keys, width of values.
# All different, all prime: a swapped axis cannot pass by luck.
B, H, Q, K, D, V = 2, 3, 5, 7, 11, 13
LONG_LENGTH = 367
"""Longer than one block of every mechanism that works block by block, and not a multiple of it."""


class SequenceLengths(NamedTuple):
    """Number of queries and of keys."""

    queries: int
    keys: int

    def __str__(self) -> str:
        return f"{self.queries} queries, {self.keys} keys"


LENGTHS = (
    SequenceLengths(Q, K),
    SequenceLengths(K, K),
    SequenceLengths(K, Q),
    SequenceLengths(1, K),
)
MASKS = (
    "none",
    "causal",
    "keys",
    "floats",
    "causal keys",
    "window",
    "segments",
    "causal segments",
    "pairs",
    "bias",
    "key_bias",
    "causal key_bias",
    "bias causal keys",
    "key_bias bias keys window segments",
    "empty",
)
"""Kinds of masks; `make_mask` explains the words."""


def random_tensor(*shape: int) -> Tensor:
    """A float64 leaf tensor with gradient."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def random_qkv(queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries `(B, H, Q, D)`, keys `(B, H, K, D)` and values `(B, H, K, V)`, always the same."""
    torch.manual_seed(0)
    return (
        random_tensor(B, H, queries, D),
        random_tensor(B, H, keys, D),
        random_tensor(B, H, keys, V),
    )


def make_mask(kind: str, queries: int, keys: int) -> Mask:
    """Build one of MASKS. Each word of `kind` switches on one rule or bias.

    none      nothing is masked
    causal    later keys are hidden
    keys      padded keys are hidden
    floats    the same, with a padding mask of floats instead of bools
    window    keys more than 2 positions away are hidden
    segments  keys of other documents are hidden; documents have 3 positions
    pairs     random (query, key) pairs are hidden
    bias      a bias for each head, query and key is added to the scores
    key_bias  a bias for each example, head and key is added to the scores
    empty     all keys of the first example are hidden
    """
    torch.manual_seed(1)
    words = kind.split()
    key_mask = None
    if "keys" in words or "floats" in words:
        key_mask = torch.ones(B, keys, dtype=torch.bool)
        key_mask[0, -2:], key_mask[1, 0], key_mask[1, 3] = False, False, False
        key_mask = key_mask.float() if "floats" in words else key_mask
    if kind == "empty":
        key_mask = torch.tensor([False, True]).unsqueeze(-1).repeat(1, keys)
    segments = (
        (torch.arange(keys) // 3).repeat(B, 1) if "segments" in words and queries <= keys else None
    )
    return Mask(
        causal="causal" in words,
        keys=key_mask,
        reach=2 if "window" in words else None,
        segments=segments,
        pairs=torch.rand(B, 1, queries, keys) > 0.4 if "pairs" in words else None,
        bias=random_tensor(H, queries, keys) if "bias" in words else None,
        key_bias=random_tensor(B, H, keys) if "key_bias" in words else None,
    )


def make_extra(mechanism: Mechanism, q: Tensor, k: Tensor) -> Tensor | None:
    """Example output of the mechanism's learned module; None if it has no such module."""
    torch.manual_seed(3)
    return mechanism.example_extra(q, k)


def collect_leaves(qkv: Sequence[Tensor], mask: Mask, extra: Tensor | None) -> list[Tensor]:
    """All tensors that a gradient may flow to."""
    return [*qkv, *(tensor for tensor in (mask.bias, mask.key_bias, extra) if tensor is not None)]


def compute_gradients(
    result: Tensor, leaves: Sequence[Tensor], grad_output: Tensor
) -> list[Tensor]:
    """Gradients of `result` with respect to `leaves`; zeros for unused leaves."""
    gradients = torch.autograd.grad(result, leaves, grad_output, allow_unused=True)
    return [
        torch.zeros_like(leaf) if gradient is None else gradient
        for gradient, leaf in zip(gradients, leaves, strict=True)
    ]


def compute_visibility(mask: Mask, queries: int, keys: int) -> Bool[Tensor, "B 1 Q K"]:
    """Reference implementation of a mask: True where a query sees a key.

    The last query is aligned with the last key.
    """
    visible = torch.ones(B, 1, queries, keys, dtype=torch.bool)
    for query in range(queries):
        for key in range(keys):
            for _, allowed in iter_mask_rules(mask, query + keys - queries, query, key):
                visible[:, 0, query, key] &= allowed
    return visible


def iter_mask_rules(
    mask: Mask, position: int, query: int, key: int
) -> Iterator[tuple[str, bool | Bool[Tensor, " B"]]]:
    """Yield (reason, allowed) for each rule that may hide `key` from `query`.

    `query` and `key` are indices; `position` is that of the query among the keys. `allowed` is one
    bool, or one per example.
    """
    if mask.causal:
        yield "it is in the future", key <= position
    if mask.reach is not None:
        yield f"it is further than {mask.reach} positions away", abs(key - position) <= mask.reach
    if mask.keys is not None:
        yield "it is padding", mask.keys[:, key] != 0
    if mask.segments is not None:
        yield "it is in another document", mask.segments[:, key] == mask.segments[:, position]
    if mask.pairs is not None:
        yield "`mask.pairs` excludes this pair", mask.pairs[:, 0, query, key]


def explain_hidden_key(mask: Mask, example: int, query: int, key: int, offset: int) -> str:
    """Say why a key is hidden from a query in one example of the batch.

    `example`, `query` and `key` are indices; `offset` is the number of keys minus that of queries.
    """
    rules = [
        (reason, torch.as_tensor(allowed).expand(B))
        for reason, allowed in iter_mask_rules(mask, query + offset, query, key)
    ]
    return " and ".join(reason for reason, allowed in rules if not allowed[example])
