"""Kernel of sparsemax and 1.5-entmax attention: after the scores, only keys with weight cost time.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `Sparsemax.attend` and `Entmax15.attend`
(nn/attention) if `supports` is True. The loops are in native/kernels/entmax_attention.cpp.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from typing import Any

from neural.native.library import NativeFunction
from neural.nn.kernels._attention import (
    address_of,
    allocate_scratch,
    empty_gradients,
    empty_output,
    expand_key_mask,
    list_sizes,
    supports_inputs,
)
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask

TRACEABLE = True
"""`torch.compile` may put the operator in its graph: `supports` reads no values of tensors."""

_scratch_size = NativeFunction("entmax_attention_scratch_size", "p i p")
_forward = NativeFunction("entmax_attention_forward", "ppp p ppp p p f ii")
_backward = NativeFunction("entmax_attention_backward", "ppp p ppp ppp p p f ii")


@torch.library.custom_op("neural::entmax_attention", mutates_args=(), device_types="cpu")
def entmax_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor | None,
    causal: bool,
    squared: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Attention output (B, H, Q, V); largest score and threshold of each query (B, H, Q).

    q (B, H, Q, D), k (B, H, K, D), v (B, H, K, V); key_mask (B, K) is True for keys that are not
    padding. The weights are the 1.5-entmax of the scores if `squared`, else the sparsemax.
    """
    q, k, v = (tensor.contiguous() for tensor in (q, k, v))
    outputs = _empty_outputs(q, v)
    sizes, threads = list_sizes(q, k, v, causal), torch.get_num_threads()
    scratch = allocate_scratch(_scratch_size, sizes, threads)
    _forward(
        *(tensor.data_ptr() for tensor in (q, k, v)),
        address_of(key_mask),
        *(tensor.data_ptr() for tensor in (*outputs, scratch)),
        sizes,
        q.shape[-1] ** -0.5,
        int(squared),
        threads,
    )
    return outputs


@torch.library.custom_op("neural::entmax_attention_backward", mutates_args=(), device_types="cpu")
def entmax_attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor | None,
    largest: torch.Tensor,
    thresholds: torch.Tensor,
    grad_out: torch.Tensor,
    causal: bool,
    squared: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k and v."""
    q, k, v, largest, thresholds, grad_out = (
        tensor.contiguous() for tensor in (q, k, v, largest, thresholds, grad_out)
    )
    grads = empty_gradients(q, k, v)
    sizes, threads = list_sizes(q, k, v, causal), torch.get_num_threads()
    scratch = allocate_scratch(_scratch_size, sizes, threads)
    _backward(
        *(tensor.data_ptr() for tensor in (q, k, v)),
        address_of(key_mask),
        *(tensor.data_ptr() for tensor in (largest, thresholds, grad_out, *grads, scratch)),
        sizes,
        q.shape[-1] ** -0.5,
        int(squared),
        threads,
    )
    return grads


def _empty_outputs(
    q: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Attention output, largest scores and thresholds."""
    return (
        empty_output(q, v),
        q.new_empty(q.shape[:3]),
        q.new_empty(q.shape[:3]),
    )


@entmax_attention.register_fake
def _(q: Any, k: Any, v: Any, key_mask: Any, causal: bool, squared: bool) -> Any:
    return _empty_outputs(q, v)


@entmax_attention_backward.register_fake
def _(q: Any, k: Any, v: Any, *others: Any) -> Any:
    return empty_gradients(q, k, v)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    *tensors, ctx.causal, ctx.squared = inputs
    ctx.save_for_backward(*tensors, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _autograd_backward(ctx: Any, grad_out: torch.Tensor, *unused: Any) -> tuple[Any, ...]:
    grads = entmax_attention_backward(*ctx.saved_tensors, grad_out, ctx.causal, ctx.squared)
    return (*grads, None, None, None)


entmax_attention.register_autograd(_autograd_backward, setup_context=_setup_context)


def supports(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> bool:
    """Whether `run` can compute a call: no rules but padding and causality, and no biases."""
    return supports_inputs(q, k, v, mask, dropout)


def run(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same values as `weights @ v`; the mechanism has α = 2 (sparsemax) or 1.5."""
    key_mask = expand_key_mask(mask, k)
    return entmax_attention(q, k, v, key_mask, mask.causal, squared=mechanism.alpha == 1.5)[0]
