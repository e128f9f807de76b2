"""What mechanisms are tried with: queries, keys and values, masks of every kind, and who may then be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from neural.modules.late import torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxtyping import Bool
    from torch import Tensor

B, H, Q, K, D, V = 2, 3, 5, 7, 11, 13   # all different, all prime: a swapped axis cannot pass by luck
LONG = 367
"""More than any mechanism takes in one piece."""


class Lengths(NamedTuple):
    """How many there are."""

    queries: int
    keys: int

    def __str__(self) -> str:
        return f"{self.queries} queries, {self.keys} keys"


LENGTHS = (Lengths(Q, K), Lengths(K, K), Lengths(K, Q), Lengths(1, K))
MASKS = (
    "none", "causal", "keys", "floats", "causal keys", "window", "segments", "causal segments", "pairs", "bias",
    "key_bias", "causal key_bias", "bias causal keys", "key_bias bias keys window segments", "empty",
)  # fmt: skip


def numbers(*shape: int) -> Tensor:
    """That can be learned, with as many digits as there are."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def three(queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values."""
    torch.manual_seed(0)
    return numbers(B, H, queries, D), numbers(B, H, keys, D), numbers(B, H, keys, V)


def mask_of(kind: str, queries: int, keys: int) -> Mask:
    """One of MASKS."""
    torch.manual_seed(1)
    words = kind.split()
    real = None
    if "keys" in words or "floats" in words:
        real = torch.ones(B, keys, dtype=torch.bool)
        real[0, -2:], real[1, 0], real[1, 3] = False, False, False
        real = real.float() if "floats" in words else real
    if kind == "empty":
        real = torch.tensor([False, True]).unsqueeze(-1).repeat(1, keys)
    segments = (torch.arange(keys) // 3).repeat(B, 1) if "segments" in words and queries <= keys else None
    return Mask(
        causal="causal" in words, keys=real, reach=2 if "window" in words else None, segments=segments,
        pairs=torch.rand(B, 1, queries, keys) > 0.4 if "pairs" in words else None,
        bias=numbers(H, queries, keys) if "bias" in words else None,
        key_bias=numbers(B, H, keys) if "key_bias" in words else None,
    )  # fmt: skip


def extra_of(mechanism: Mechanism, q: Tensor, k: Tensor) -> Tensor | None:
    """What the mechanism's learned part might give."""
    torch.manual_seed(3)
    return mechanism.extra(q, k)


def leaves_of(qkv: Sequence[Tensor], mask: Mask, extra: Tensor | None) -> list[Tensor]:
    """All that a gradient may flow to."""
    return [*qkv, *(one for one in (mask.bias, mask.key_bias, extra) if one is not None)]


def gradients(result: Tensor, leaves: Sequence[Tensor], towards: Tensor) -> list[Tensor]:
    """Zeros where a mechanism does not use something."""
    found = torch.autograd.grad(result, leaves, towards, allow_unused=True)
    return [torch.zeros_like(leaf) if one is None else one for one, leaf in zip(found, leaves, strict=True)]


def visible(mask: Mask, queries: int, keys: int) -> Bool[Tensor, "B 1 Q K"]:
    """Who may be seen, pair by pair: the last query stands at the last key."""
    seen = torch.ones(B, 1, queries, keys, dtype=torch.bool)
    for query in range(queries):
        for key in range(keys):
            for _, allowed in rules(mask, query + keys - queries, query, key):
                seen[:, 0, query, key] &= allowed
    return seen


def rules(mask: Mask, at: int, query: int, key: int) -> Iterator[tuple[str, bool | Bool[Tensor, " B"]]]:
    """Why a key may be hidden from a query that stands at position `at`, and in which examples it is not."""
    if mask.causal:
        yield "it lies ahead", key <= at
    if mask.reach is not None:
        yield f"it is further than {mask.reach} positions away", abs(key - at) <= mask.reach
    if mask.keys is not None:
        yield "it is padding", mask.keys[:, key] != 0
    if mask.segments is not None:
        yield "it is in another document", mask.segments[:, key] == mask.segments[:, at]
    if mask.pairs is not None:
        yield "this pair is ruled out", mask.pairs[:, 0, query, key]


def why_hidden(mask: Mask, example: int, query: int, key: int, lead: int) -> str:
    """In words; `lead` is by how much there are more keys than queries."""
    found = [(why, torch.as_tensor(allowed).expand(B)) for why, allowed in rules(mask, query + lead, query, key)]
    return " and ".join(why for why, allowed in found if not allowed[example])
