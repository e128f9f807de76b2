"""Attention as a function: queries, keys and values in, mixed values out, by any mechanism of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.modules.attention import registry as attention
from neural.modules.finite import finite
from neural.modules.late import torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def attend(
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B H K D"],
    v: Float[Tensor, "B H K V"],
    mechanism: str | Mechanism = "self",
    mask: Tensor | Mask | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    extra: Tensor | None = None,
    **arguments: Any,
) -> Float[Tensor, "B H Q V"]:
    """`neural.attend(q, k, v, mechanism="localized", window=7)`: what each query finds.

    `mask` is (B, K) for padding, or anything that spreads to (B, H, Q, K), True or 1 where a key is seen; or a `Mask`.
    Keys and values may have fewer heads than queries: groups of query heads share them. `extra` is for mechanisms with
    a learned part (the boundary scores of "boundary_aware").
    """
    chosen = mechanism if isinstance(mechanism, Mechanism) else attention.get(mechanism)(**arguments)
    _check(q, k, v)
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    rules = _rules(mask, causal)
    rules.check(q, k)
    return attended(chosen, q, k, v, rules, dropout, extra)


def attended(
    mechanism: Mechanism, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"],
    mask: Mask, dropout: float, extra: Tensor | None,
) -> Float[Tensor, "B H Q V"]:  # fmt: skip
    """The mechanism's `mix`, where a function mode of torch can hear it like one of torch's own functions."""
    if torch.overrides.has_torch_function((q, k, v)):
        heard: Tensor = torch.overrides.handle_torch_function(
            attended, (q, k, v), mechanism, q, k, v, mask, dropout, extra
        )
        return heard
    return mechanism.mix(q, k, v, mask, dropout, extra)


def _rules(mask: Tensor | Mask | None, causal: bool) -> Mask:
    if isinstance(mask, Mask):
        return replace(mask, causal=mask.causal or causal)
    if mask is None:
        return Mask(causal=causal)
    if mask.ndim == 2:
        return Mask(causal=causal, keys=mask)
    return Mask(causal=causal, pairs=mask)


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(f"q, k and v must be (batch, heads, positions, width), got {shapes}")
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3]:
        raise ValueError(f"k and v must have the same batch, heads and positions, and q the same batch, got {shapes}")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q and k must have the same width, got {shapes}")
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"the heads of k and v must divide those of q, got {shapes}")
    for name, one in (("q", q), ("k", k), ("v", v)):
        if not finite(one):
            raise ValueError(f"`{name}` {tuple(one.shape)} has NaN or infinite numbers in it")
