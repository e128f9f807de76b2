"""Attention calls to measure, with every kind of mask, and their weights by the definition."""

from dataclasses import replace

import torch

from neural.capture.attention_call import AttentionCall
from neural.capture.attention_maps import AttentionMaps
from neural.nn.attention.self import Self, dot_product_scores
from neural.nn.mask import Mask

B, H, Q, K, D = 2, 3, 29, 53, 7  # all different, all prime: a swapped axis cannot pass by luck
TOKENS = torch.randint(0, 11, (B, K), generator=torch.Generator().manual_seed(7))
KINDS = (
    "none",
    "causal",
    "keys",
    "floats",
    "left padding",
    "window",
    "causal window",
    "segments",
    "causal segments",
    "pairs",
    "pairs of heads",
    "bias",
    "minus infinity",
    "key_bias",
    "causal key_bias keys",
    "key_bias bias keys window segments",
    "empty example",
    "empty rows",
    "extra",
    "extra pairs",
    "extra bias keys",
)
EXTRA = 3
"""Number of extra keys in calls of a kind with `extra` in its name."""


def random_tensor(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def make_mask(kind: str, queries: int = Q, keys: int = K) -> Mask:
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
        pairs = random_tensor(B, H if "heads" in words else 1, queries, keys, seed=1) > 0.2
    if kind == "empty rows":
        pairs = (torch.arange(queries) % 3 > 0)[:, None].repeat(1, keys)
    bias = random_tensor(H, queries, keys, seed=2) if "bias" in words else None
    if kind == "minus infinity":  # masks as other models write them, also a fully hidden row
        bias = torch.zeros(B, 1, queries, keys).masked_fill(
            random_tensor(B, 1, queries, keys, seed=3) > 0, -torch.inf
        )
        bias[1, :, 4], bias[0, :, 5, 2:] = torch.finfo(torch.float32).min, -10_000.0
    return Mask(
        causal="causal" in words,
        keys=real,
        reach=4 if "window" in words else None,
        pairs=pairs,
        bias=bias,
        segments=(torch.arange(keys) // 9).repeat(B, 1) if "segments" in words else None,
        key_bias=random_tensor(B, H, keys, seed=4) if "key_bias" in words else None,
    )


def make_call(kind: str, *, queries: int = Q, seed: int = 0, scale: float = 2.0) -> AttentionCall:
    extra = EXTRA if "extra" in kind.split() else 0
    keys = queries + extra if queries == K else K
    q, k = (
        random_tensor(B, H, queries, D, seed=10 + seed) * scale,
        random_tensor(B, H, keys, D, seed=20 + seed) * scale,
    )
    return AttentionCall(
        q, k, make_mask(kind, queries, keys), tokens=TOKENS[:, : keys - extra], extra_keys=extra
    )


def make_call_pair(kind: str) -> tuple[AttentionCall, AttentionCall]:
    """Two layers under one mask."""
    first, second = make_call(kind), make_call(kind, seed=1)
    return first, replace(second, mask=first.mask)


def compute_dense_maps(call: AttentionCall) -> AttentionMaps:
    """Weights by the mechanism and the mask, not by the tested code; double precision."""
    q, k, mask = call.q.double(), call.k.double(), call.mask
    visible = mask.to_keep_mask(call.queries, call.keys, q.device)
    visible = torch.ones(call.queries, call.keys, dtype=torch.bool) if visible is None else visible
    if mask.bias is not None:
        visible = visible & (mask.bias > -10_000)
    visible = visible.expand(*q.shape[:3], call.keys)
    weights = Self().weights(q, k, mask).masked_fill(~visible, 0)
    positions = torch.arange(call.positions - call.queries, call.positions)
    extra = {
        "extra_keys": call.extra_keys,
        "tokens": call.tokens,
        "first_keys": find_first_keys(call),
    }
    return AttentionMaps(
        weights=weights,
        visible_mask=visible,
        query_positions=positions,
        scores=dot_product_scores(q, k, mask),
        **extra,
    )


def find_first_keys(call: AttentionCall) -> torch.Tensor:
    """First key of each query's sequence or segment; −1 if unknown. By loops."""
    mask, positions = call.mask, torch.arange(call.positions - call.queries, call.positions)
    unpadded = torch.ones(B, call.keys, dtype=torch.bool) if mask.keys is None else mask.keys != 0
    visible = torch.ones(B, H, call.queries, call.keys, dtype=torch.bool)
    visible = visible & (mask.pairs if mask.pairs is not None else True)
    visible = visible & ((mask.bias > -10_000) if mask.bias is not None else True)
    first_keys = torch.zeros(B, call.queries, dtype=torch.long)
    for example in range(B):
        valid = [row for row in range(call.queries) if unpadded[example, positions[row]]]
        usable = unpadded[example] & visible[example][:, valid].flatten(0, 1).any(dim=0)
        for row, position in enumerate(positions.tolist()):
            own = usable
            if mask.segments is not None:
                own = own & (mask.segments[example] == mask.segments[example, position])
            first = int(own.byte().argmax())
            known = mask.segments is not None or call.queries == call.positions
            first_keys[example, row] = (
                first if known or first == int(unpadded[example].byte().argmax()) else -1
            )
    return first_keys


def find_counted_rows(call: AttentionCall, maps: AttentionMaps) -> torch.Tensor:
    """Rows of each head that count: not padding, and with a visible key."""
    real = torch.ones(B, call.queries, dtype=torch.bool)
    if call.mask.keys is not None:
        real = call.mask.keys[:, call.positions - call.queries : call.positions] != 0
    return maps.visible_mask.any(dim=-1) & real.unsqueeze(1)
