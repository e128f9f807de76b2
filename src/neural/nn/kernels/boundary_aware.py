"""Kernel of boundary-aware attention: softmax attention with a bias per key that has a gradient.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `BoundaryAware.attend`
(nn/attention/boundary_aware.py) if `supports` is True. The bias is half the boundary score of a key,
which a small network predicts; it is added to the scores of all queries for that key.

torch's fused kernel adds a mask at almost no cost, but gives it no gradient. As one more column of
q and k the bias has a gradient, but 65 columns are slower than 64. The backward pass in
native/kernels/flash_bias.cpp computes that gradient at no cost.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from neural.native.library import NativeFunction
from neural.nn.kernels._attention import (
    allocate_scratch,
    empty_gradients,
    empty_output,
    list_sizes,
    supports_inputs,
)
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask

KEY_BLOCK = 64
"""Keys of a tile in the kernel: copies of the keys are padded to a multiple of it."""

TRACEABLE = True
"""`torch.compile` may put the operator in its graph: `supports` reads no values of tensors."""

_forward = NativeFunction("flash_bias_forward", "pppp pp p p f i")
_scratch_size = NativeFunction("flash_bias_scratch_size", "p i p")
_backward = NativeFunction("flash_bias_backward", "pppp ppp pppp p p f i")


@torch.library.custom_op("neural::flash_bias", mutates_args=(), device_types="cpu")
def flash_bias(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention output (B, H, Q, V) and log-sum-exp of the scores (B, H, Q).

    q (B, H, Q, D), k (B, H, K, D), v (B, H, K, V); bias (B, H, K) is added to the scores of each
    query, −inf hides a key. A query without visible keys gets zeros.
    """
    q, k, v, bias = (tensor.contiguous() for tensor in (q, k, v, bias))
    out, logsumexp = empty_output(q, v), q.new_empty(q.shape[:3])
    padded_keys = -(-k.shape[2] // KEY_BLOCK) * KEY_BLOCK
    transposed_keys = k.new_empty(k.shape[0] * k.shape[1] * k.shape[3] * padded_keys)
    _forward(
        *(tensor.data_ptr() for tensor in (q, k, v, bias, out, logsumexp, transposed_keys)),
        list_sizes(q, k, v, causal),
        q.shape[-1] ** -0.5,
        torch.get_num_threads(),
    )
    return out, logsumexp


@torch.library.custom_op("neural::flash_bias_backward", mutates_args=(), device_types="cpu")
def flash_bias_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    grad_out: torch.Tensor,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k, v and bias."""
    q, k, v, bias, out, logsumexp, grad_out = (
        tensor.contiguous() for tensor in (q, k, v, bias, out, logsumexp, grad_out)
    )
    grads = empty_gradients(q, k, v, bias)
    sizes, threads = list_sizes(q, k, v, causal), torch.get_num_threads()
    scratch = allocate_scratch(_scratch_size, sizes, threads)
    _backward(
        *(tensor.data_ptr() for tensor in (q, k, v, bias, out, logsumexp, grad_out)),
        *(tensor.data_ptr() for tensor in (*grads, scratch)),
        sizes,
        q.shape[-1] ** -0.5,
        threads,
    )
    return grads


@flash_bias.register_fake
def _(q: Any, k: Any, v: Any, bias: Any, causal: bool) -> Any:
    return empty_output(q, v), q.new_empty(q.shape[:3])


@flash_bias_backward.register_fake
def _(q: Any, k: Any, v: Any, bias: Any, *others: Any) -> Any:
    return empty_gradients(q, k, v, bias)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    *tensors, ctx.causal = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])


def _autograd_backward(ctx: Any, grad_out: torch.Tensor, *unused: Any) -> tuple[Any, ...]:
    return (*flash_bias_backward(*ctx.saved_tensors, grad_out, ctx.causal), None)


flash_bias.register_autograd(_autograd_backward, setup_context=_setup_context)


def supports(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> bool:
    """Whether `run` can compute a call: no rules but padding, causality and a bias per key."""
    return supports_inputs(q, k, v, replace(mask, key_bias=None), dropout)


def run(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same values as `BoundaryAware.attend` in torch operations."""
    bias = mechanism.softmax_mask(q, k, mask, extra).key_bias.expand(k.shape[:-1]).to(q.dtype)
    if mask.keys is not None:
        bias = bias.masked_fill((mask.keys == 0).unsqueeze(1), float("-inf"))
    return flash_bias(q, k, v, bias, mask.causal)[0]
