"""Attention as a function: queries, keys and values in, mixed values out, by any mechanism of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.core.names import closest
from neural.language.expression import read_call
from neural.modules.attention import registry as attention
from neural.modules.finite import finite
from neural.modules.late import torch
from neural.modules.mask import Mask, is_keep_mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

_OWN = ("mechanism", "mask", "causal", "dropout", "extra")
"""Arguments of `attend` itself."""


def attend(
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B H K D"],
    v: Float[Tensor, "B H K V"],
    /,
    mechanism: str | Mechanism = "self",
    mask: Tensor | Mask | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    extra: Tensor | None = None,
    **arguments: Any,
) -> Float[Tensor, "B H Q V"]:
    """`neural.attend(q, k, v, mechanism="localized", window=7)`: what each query finds.

    The mechanism's own arguments stand beside its name (`"topk", k=3`) or in it (`"topk(k=3)"`).

    `mask` is one of three. A padding mask (B, K): True or 1 where a key is real. A tensor that broadcasts to
    (B, H, Q, K): True or 1 where a key is seen; floats other than 0 and 1 are added to the scores, as torch does it
    (−inf hides a key). Or a `Mask`. A query that sees no key gets zeros.

    Keys and values may have fewer heads than queries: groups of query heads share them. `extra` is for mechanisms with
    a learned part (the boundary scores of "boundary_aware").
    """
    chosen = _mechanism(mechanism, arguments)
    _check(q, k, v)
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    rules = _rules(mask, causal)
    rules.check(q, k)
    return attended(chosen, q, k, v, rules, dropout, extra)


def _mechanism(mechanism: str | Mechanism, arguments: dict[str, Any]) -> Mechanism:
    """By name and arguments, as a call (`"topk(k=3)"`), or as it is."""
    if isinstance(mechanism, Mechanism) or "(" in mechanism:
        if arguments:
            names = ", ".join(f"`{name}`" for name in arguments)
            raise TypeError(f"{mechanism} has its arguments already; {names} must stand inside it")
        return mechanism if isinstance(mechanism, Mechanism) else read_call(mechanism, attention)
    entry = attention.get(mechanism)
    known = entry.settings()
    for name in arguments:
        if name not in known:
            guess = closest(name, (*known, *_OWN))
            hint = f"; did you mean `{guess}`?" if guess else ""
            takes = ", ".join(f"`{setting}`" for setting in known) or "no arguments"
            raise TypeError(f"`{mechanism}` takes {takes}, got `{name}`{hint}")
    return entry(**arguments)


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
    if mask.is_floating_point() and not is_keep_mask(mask):
        return _additive(mask, causal)
    if mask.is_floating_point() and mask.numel() and not mask.any():
        raise ValueError(
            "`mask` is 0.0 everywhere: as a keep mask it hides every key. If it is meant to be added to the scores, "
            "leave it out or write `mask=Mask(bias=mask)`"
        )
    return Mask(causal=causal, pairs=mask)


def _additive(mask: Tensor, causal: bool) -> Mask:
    """A mask as torch's attention takes it: added to the scores; −inf, or nearly the lowest float, hides a key."""
    if mask.isnan().any() or mask.isposinf().any():
        raise ValueError("`mask` has NaN or +inf in it")
    seen = mask > torch.finfo(mask.dtype).min / 2
    bias = mask.masked_fill(~seen, 0)
    return Mask(causal=causal, pairs=seen, bias=bias if mask.requires_grad or bias.any() else None)


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
