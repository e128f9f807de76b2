"""Attention to measure: every kind of mask, and the weights that the mechanism itself says follow from it."""

from dataclasses import replace

import torch

from neural.modules.attention.self import Self, scores
from neural.modules.mask import Mask
from neural.tracking.look import Look
from neural.tracking.maps import Maps

B, H, Q, K, D = 2, 3, 29, 53, 7   # all different, all prime: a swapped axis cannot pass by luck
TOKENS = torch.randint(0, 11, (B, K), generator=torch.Generator().manual_seed(7))
KINDS = (
    "none", "causal", "keys", "floats", "left padding", "window", "causal window", "segments", "causal segments",
    "pairs", "pairs of heads", "bias", "minus infinity", "key_bias", "causal key_bias keys",
    "key_bias bias keys window segments", "empty example", "empty rows", "extra", "extra pairs", "extra bias keys",
)  # fmt: skip
EXTRA = 3
"""Keys that are no positions, of looks of a kind with `extra` in its name."""


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def mask_of(kind: str, queries: int = Q, keys: int = K) -> Mask:
    words = kind.split()
    real = None
    if "keys" in words or "floats" in words:
        real = torch.ones(B, keys, dtype=torch.bool)
        real[0, -5:], real[1, 0], real[1, 3] = False, False, False
        real = real.float() if "floats" in words else real
    if "left" in words:
        real = torch.arange(keys) >= torch.tensor([[11], [40]])
    if kind == "empty example":
        real = torch.tensor([[False], [True]]).repeat(1, keys)
    pairs = None
    if "pairs" in words:
        pairs = numbers(B, H if "heads" in words else 1, queries, keys, seed=1) > 0.2
    if kind == "empty rows":
        pairs = (torch.arange(queries) % 3 > 0)[:, None].repeat(1, keys)
    bias = numbers(H, queries, keys, seed=2) if "bias" in words else None
    if kind == "minus infinity":   # masks as foreign models write them, a whole row among them
        bias = torch.zeros(B, 1, queries, keys).masked_fill(numbers(B, 1, queries, keys, seed=3) > 0, -torch.inf)
        bias[1, :, 4], bias[0, :, 5, 2:] = torch.finfo(torch.float32).min, -10_000.0
    return Mask(
        causal="causal" in words, keys=real, reach=4 if "window" in words else None, pairs=pairs, bias=bias,
        segments=(torch.arange(keys) // 9).repeat(B, 1) if "segments" in words else None,
        key_bias=numbers(B, H, keys, seed=4) if "key_bias" in words else None,
    )  # fmt: skip


def look_of(kind: str, *, queries: int = Q, seed: int = 0, scale: float = 2.0) -> Look:
    extra = EXTRA if "extra" in kind.split() else 0
    keys = queries + extra if queries == K else K
    q, k = numbers(B, H, queries, D, seed=10 + seed) * scale, numbers(B, H, keys, D, seed=20 + seed) * scale
    return Look(q, k, mask_of(kind, queries, keys), tokens=TOKENS[:, : keys - extra], extra_keys=extra)


def two_looks(kind: str) -> tuple[Look, Look]:
    """Two layers under one mask."""
    one, other = look_of(kind), look_of(kind, seed=1)
    return one, replace(other, mask=one.mask)


def written_out(look: Look) -> Maps:
    """By the mechanism and the mask, not by what is tested here; double precision."""
    q, k, mask = look.q.double(), look.k.double(), look.mask
    kept = mask.kept(look.queries, look.keys, q.device)
    kept = torch.ones(look.queries, look.keys, dtype=torch.bool) if kept is None else kept
    if mask.bias is not None:
        kept = kept & (mask.bias > -10_000)
    kept = kept.expand(*q.shape[:3], look.keys)
    weights = Self().weights(q, k, mask).masked_fill(~kept, 0)
    at = torch.arange(look.positions - look.queries, look.positions)
    extra = {"extra_keys": look.extra_keys, "tokens": look.tokens, "origins": origins_of(look)}
    return Maps(weights=weights, kept=kept, at=at, scores=scores(q, k, mask), **extra)


def origins_of(look: Look) -> torch.Tensor:
    """The first key of each query's text: of its document, or the first that any real query may see; −1 if unknown."""
    mask, at = look.mask, torch.arange(look.positions - look.queries, look.positions)
    padded = torch.ones(B, look.keys, dtype=torch.bool) if mask.keys is None else mask.keys != 0
    rules = torch.ones(B, H, look.queries, look.keys, dtype=torch.bool)
    rules = rules & (mask.pairs if mask.pairs is not None else True)
    rules = rules & ((mask.bias > -10_000) if mask.bias is not None else True)
    found = torch.zeros(B, look.queries, dtype=torch.long)
    for example in range(B):
        real = [row for row in range(look.queries) if padded[example, at[row]]]
        seen = padded[example] & rules[example][:, real].flatten(0, 1).any(dim=0)
        for row, position in enumerate(at.tolist()):
            own = seen
            if mask.segments is not None:
                own = own & (mask.segments[example] == mask.segments[example, position])
            first = int(own.byte().argmax())
            known = mask.segments is not None or look.queries == look.positions
            found[example, row] = first if known or first == int(padded[example].byte().argmax()) else -1
    return found


def counted(look: Look, maps: Maps) -> torch.Tensor:
    """The rows of each head that count: not padding, and with something to look at."""
    real = torch.ones(B, look.queries, dtype=torch.bool)
    if look.mask.keys is not None:
        real = look.mask.keys[:, look.positions - look.queries : look.positions] != 0
    return maps.kept.any(dim=-1) & real.unsqueeze(1)
