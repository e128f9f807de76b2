"""Kernel of additive attention: forward and backward without values of size Q×K×D in memory.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `Additive.attend` (nn/attention/additive.py)
if `supports` is True. The loops are in native/kernels/additive.cpp.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

import ctypes
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

_forward = NativeFunction("additive_forward", "pppp p pppp p p i p")
_scratch_size = NativeFunction("additive_scratch_size", "p i p")
_backward = NativeFunction("additive_backward", "ppp pp ppp p pppp p p i")


@torch.library.custom_op("neural::additive", mutates_args=(), device_types="cpu")
def additive(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    u: torch.Tensor,
    key_mask: torch.Tensor | None,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Attention output, and the tensors that only the backward pass needs.

    q (B, H, Q, D), k (B, H, K, D), v (B, H, K, V), u (H, D); key_mask (B, K) is True for keys that
    are not padding.
    """
    q, k, v, u = (tensor.contiguous() for tensor in (q, k, v, u))
    outputs = _empty_outputs(q, k, v)
    has_memory = ctypes.c_int64()
    _forward(
        *(tensor.data_ptr() for tensor in (q, k, v, u)),
        address_of(key_mask),
        *(tensor.data_ptr() for tensor in outputs),
        list_sizes(q, k, v, causal),
        torch.get_num_threads(),
        ctypes.byref(has_memory),
    )
    if not has_memory.value:
        raise MemoryError(f"additive attention: no memory for the weights of {k.shape[-2]} keys")
    return outputs


@torch.library.custom_op("neural::additive_backward", mutates_args=(), device_types="cpu")
def additive_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    u: torch.Tensor,
    key_mask: torch.Tensor | None,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    query_terms: torch.Tensor,
    key_terms: torch.Tensor,
    is_product: torch.Tensor,
    grad_out: torch.Tensor,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k, v and u."""
    v, u, grad_out = (tensor.contiguous() for tensor in (v, u, grad_out))
    grad_q, grad_k, grad_v, grad_u = empty_gradients(q, k, v, u)
    grad_u_of_examples = grad_u.new_empty(q.shape[0], *u.shape)
    sizes, threads = list_sizes(q, k, v, causal), torch.get_num_threads()
    scratch = allocate_scratch(_scratch_size, sizes, threads)
    _backward(
        v.data_ptr(),
        u.data_ptr(),
        address_of(key_mask),
        *(tensor.data_ptr() for tensor in (out, logsumexp, query_terms, key_terms, is_product)),
        grad_out.data_ptr(),
        *(tensor.data_ptr() for tensor in (grad_q, grad_k, grad_v, grad_u_of_examples, scratch)),
        sizes,
        threads,
    )
    torch.sum(grad_u_of_examples, dim=0, out=grad_u)
    return grad_q, grad_k, grad_v, grad_u


def _empty_outputs(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Outputs of `additive`: attention, log-sum-exp, terms of queries and of keys, their form."""
    batch, heads, queries, width = q.shape
    # The kernel pads keys to whole vectors, of 16 floats at most.
    padded_keys = (k.shape[2] + 15) // 16 * 16
    return (
        empty_output(q, v),
        q.new_empty(batch, heads, queries),
        q.new_empty(batch, heads, queries, width),
        # zeros: the kernel writes no padding, and outputs of an operator have no arbitrary values
        q.new_zeros(batch, heads, width, padded_keys),
        q.new_empty(batch * heads, dtype=torch.uint8),
    )


@additive.register_fake
def _(q: Any, k: Any, v: Any, u: Any, key_mask: Any, causal: bool) -> Any:
    return _empty_outputs(q, k, v)


@additive_backward.register_fake
def _(q: Any, k: Any, v: Any, u: Any, *others: Any) -> Any:
    return empty_gradients(q, k, v, u)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    *tensors, ctx.causal = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(*output[1:])


def _autograd_backward(ctx: Any, grad_out: torch.Tensor, *unused: Any) -> tuple[Any, ...]:
    grads = additive_backward(*ctx.saved_tensors, grad_out, ctx.causal)
    return (*grads, None, None)


additive.register_autograd(_autograd_backward, setup_context=_setup_context)


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
    has_u = extra is not None and extra.dtype == torch.float32
    return has_u and supports_inputs(q, k, v, mask, dropout)


def run(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same values as `Additive.attend`."""
    assert extra is not None
    return additive(q, k, v, extra, expand_key_mask(mask, k), mask.causal)[0]
