"""Attention as a function: `neural.attend(q, k, v)` with any registered mechanism.

A mechanism (mechanism.py) computes attention from queries, keys and values. Each file of
nn/attention is one, named after its file: "self" is softmax attention, "localized" attends to a
window, "topk" to the best keys. Scores are the scaled products of queries and keys.

Axes: B batch, H heads, Q queries, K keys, D width of queries and keys, V width of values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.core.names import find_closest
from neural.language.expression import parse_call
from neural.nn.attention import registry as attention
from neural.nn.checks import is_finite
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask, is_keep_mask
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

_ATTEND_ARGUMENTS = ("mechanism", "mask", "causal", "dropout", "extra")
"""Arguments of `attend` itself, for suggestions in error messages."""


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
    """Attention output, by any mechanism.

        out = neural.attend(q, k, v, mechanism="localized", window=7)

    Arguments of the mechanism are keyword arguments (`"topk", k=3`) or part of the name
    (`"topk(k=3)"`).

    `mask` is a padding mask (B, K), True or 1 for real keys; a tensor that broadcasts to
    (B, H, Q, K), True or 1 for visible keys; or a `Mask`. A float tensor with other values than 0
    and 1 is added to the scores as in torch (−inf hides a key). A query without visible keys gets
    zeros.

    Keys and values may have fewer heads than queries: groups of query heads share them. `extra` is
    the additional input of mechanisms with learned parameters, e.g. the boundary scores of
    "boundary_aware".
    """
    resolved = _resolve_mechanism(mechanism, arguments)
    _check_shapes(q, k, v)
    if not resolved.spreads_nan:
        _check_finite(q=q, k=k, v=v)
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    combined_mask = _build_mask(mask, causal)
    combined_mask.check(q, k)
    output = apply_mechanism(resolved, q, k, v, combined_mask, dropout, extra)
    if resolved.spreads_nan and not is_finite(output):
        _check_finite(q=q, k=k, v=v)
    return output


def _resolve_mechanism(mechanism: str | Mechanism, arguments: dict[str, Any]) -> Mechanism:
    """The mechanism for a name with arguments, a call (`"topk(k=3)"`) or an instance."""
    if isinstance(mechanism, Mechanism) or "(" in mechanism:
        if arguments:
            names = ", ".join(f"`{name}`" for name in arguments)
            raise TypeError(f"{mechanism} already has arguments; move {names} into it")
        return mechanism if isinstance(mechanism, Mechanism) else parse_call(mechanism, attention)
    entry = attention.get(mechanism)
    specs = entry.argument_specs()
    for name in arguments:
        if name not in specs:
            guess = find_closest(name, (*specs, *_ATTEND_ARGUMENTS))
            hint = f"; did you mean `{guess}`?" if guess else ""
            accepted = ", ".join(f"`{spec}`" for spec in specs) or "no arguments"
            raise TypeError(f"`{mechanism}` takes {accepted}, got `{name}`{hint}")
    return entry(**arguments)


def apply_mechanism(
    mechanism: Mechanism,
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B H K D"],
    v: Float[Tensor, "B H K V"],
    mask: Mask,
    dropout: float,
    extra: Tensor | None,
) -> Float[Tensor, "B H Q V"]:
    """`mechanism.attend`, which `__torch_function__` can override like a function of torch."""
    if torch.overrides.has_torch_function((q, k, v)):
        output: Tensor = torch.overrides.handle_torch_function(
            apply_mechanism, (q, k, v), mechanism, q, k, v, mask, dropout, extra
        )
        return output
    return mechanism.attend(q, k, v, mask, dropout, extra)


def _build_mask(mask: Tensor | Mask | None, causal: bool) -> Mask:
    """The argument `mask` of `attend` as a `Mask`. Axes and values tell what a tensor means."""
    if isinstance(mask, Mask):
        return replace(mask, causal=mask.causal or causal)
    if mask is None:
        return Mask(causal=causal)
    if mask.ndim == 2:
        return Mask(causal=causal, keys=mask)
    if mask.is_floating_point() and not is_keep_mask(mask):
        return _parse_additive_mask(mask, causal)
    if mask.is_floating_point() and mask.numel() and not mask.any():
        raise ValueError(
            "`mask` is 0.0 everywhere: as a keep mask it hides every key. "
            "If it is an additive mask, leave it out or write `mask=Mask(bias=mask)`"
        )
    return Mask(causal=causal, pairs=mask)


def _parse_additive_mask(mask: Tensor, causal: bool) -> Mask:
    """A `Mask` from an additive mask; −inf, or a value near the lowest float, hides a key."""
    if mask.isnan().any() or mask.isposinf().any():
        raise ValueError("`mask` contains NaN or +inf")
    visible = mask > torch.finfo(mask.dtype).min / 2  # many libraries write `min` for −inf
    bias = mask.masked_fill(~visible, 0)
    return Mask(
        causal=causal, pairs=visible, bias=bias if mask.requires_grad or bias.any() else None
    )


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise ValueError for shapes that do not match."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(f"q, k and v must be (batch, heads, positions, width), got {shapes}")
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3]:
        raise ValueError(
            "k and v must have the same batch, heads and positions, and q the same batch, "
            f"got {shapes}"
        )
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q and k must have the same width, got {shapes}")
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"the heads of k and v must divide those of q, got {shapes}")


def _check_finite(**tensors: Tensor) -> None:
    """Raise ValueError for values that are not finite."""
    for name, tensor in tensors.items():
        if not is_finite(tensor):
            raise ValueError(f"`{name}` {tuple(tensor.shape)} contains NaN or infinity")
