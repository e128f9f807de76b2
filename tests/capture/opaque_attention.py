"""Attention as an opaque operator, registered with transformers: no torch function shows it.

    register_opaque_functions()
    model = build(…, attn_implementation="opaque")
    with collect_opaque_weights() as weights:
        model(ids)
    weights      (module, weights) of each call, in order

The semantics are those of flash attention in transformers: a padding mask (B, K) removes tokens
before anything else, so that causal masks and windows count tokens only; the last query is at the
last key; the output of padding is 0; packed documents are found by position ids or by their ends.
The weights are computed here in double precision, independently of what is tested.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

OPAQUE = "opaque"
"""Without "flash" in its name, which would make transformers look for a kernel of that name."""
OPAQUE_DENSE = "opaque_dense"
"""The same function, with the dense masks of SDPA."""
FLEX_PROBE = "flex_probe"
"""FlexAttention that also collects its weights."""
_last_weights: list[torch.Tensor] = []
_collected: list[tuple[Any, np.ndarray]] | None = None


@torch.library.custom_op("neural_tests::opaque_attention", mutates_args=())
def opaque_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor, scale: float, cap: float
) -> torch.Tensor:
    """Attention as a kernel that no torch function shows; computed in float64."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(groups, 1) for x in (k, v))
    scores = torch.einsum("bhqd,bhkd->bhqk", q.double(), k) * scale
    scores = cap * torch.tanh(scores / cap) if cap else scores
    # without torch.softmax, so that nothing can be intercepted
    weights = torch.exp(scores + bias - (scores + bias).amax(-1, keepdim=True))
    weights = weights / weights.sum(-1, keepdim=True)
    _last_weights[:] = [weights]
    return torch.einsum("bhqk,bhke->bhqe", weights, v).to(q.dtype)


@contextlib.contextmanager
def collect_opaque_weights() -> Iterator[list[tuple[Any, np.ndarray]]]:
    """Collect the module and the weights (B, H, Q, K) of every call inside the block."""
    global _collected
    _collected = collected = []
    try:
        yield collected
    finally:
        _collected = None


def attend_like_flash(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    is_causal: bool | None = None,
    position_ids: torch.Tensor | None = None,
    cu_seq_lens_k: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    shift: int = 0,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention function of transformers. `shift`: how many later keys a causal query sees."""
    is_causal = module.is_causal if is_causal is None else is_causal
    batch, queries = query.shape[0], query.shape[2]
    if attention_mask is not None and attention_mask.ndim == 2:
        # a static cache has more slots than the mask
        key, value = (x[:, :, : attention_mask.shape[1]] for x in (key, value))
    keys = key.shape[2]
    real = torch.ones(batch, keys, dtype=torch.bool)
    dense = None
    if attention_mask is not None and attention_mask.ndim == 2:
        real = attention_mask.bool()
    elif attention_mask is not None:
        dense = attention_mask[..., :keys]
    # the number of each token, padding left out
    numbers = real.cumsum(1)
    real_queries, query_numbers = real[:, -queries:], numbers[:, -queries:]
    if queries == 1 or queries > keys or (not is_causal and queries != keys):
        real_queries = torch.ones(batch, queries, dtype=torch.bool)
        query_numbers = numbers[:, -1:].expand(-1, queries)
    distance = numbers[:, None, :] - query_numbers[:, :, None]
    visible = real[:, None, :].expand(-1, queries, -1).clone()
    if is_causal:
        visible &= distance <= shift
    if sliding_window is not None:
        visible &= distance.abs() < sliding_window
    if cu_seq_lens_k is not None and queries == keys:
        positions = torch.arange(batch * keys)
        document = torch.bucketize(positions, cu_seq_lens_k[1:].to(positions), right=True)
        document = document.reshape(batch, keys)
        visible &= document[:, :, None] == document[:, None, :]
    elif position_ids is not None and batch == 1 and queries == keys and attention_mask is None:
        document = (position_ids.reshape(-1, keys)[:1] == 0).cumsum(1)
        visible &= document[:, :, None] == document[:, None, :]
    visible = visible[:, None]
    bias = torch.zeros(visible.shape, dtype=torch.float64)
    if dense is not None and dense.dtype == torch.bool:
        visible = visible & dense
    elif dense is not None:
        bias = bias + dense.double()
    if position_bias is not None:
        bias = bias + position_bias[..., :keys].double()
    bias = bias.masked_fill(~visible, -1e30)
    if s_aux is not None:  # a key of zeros, whose score is the learned sink, and a value of zeros
        sink = s_aux.double().reshape(1, -1, 1, 1).expand(batch, -1, queries, 1)
        bias = torch.cat((bias.expand(-1, query.shape[1], -1, -1), sink), -1)
        key, value = (torch.nn.functional.pad(x, (0, 0, 0, 1)) for x in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    output = opaque_attention(query, key, value, bias, scale, softcap or 0.0)
    if _collected is not None:
        weights = _last_weights[0][..., :keys].clone()
        weights[~(bias[..., :keys] > -1e29).expand_as(weights)] = 0  # rows that see nothing
        _collected.append((module, weights.numpy()))
    output = output * real_queries[:, None, :, None]
    return output.transpose(1, 2).contiguous(), None


def attend_by_flex(module: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    """FlexAttention of transformers; the identity as values gives its weights."""
    from transformers.integrations.flex_attention import flex_attention_forward

    if _collected is not None:
        identity = torch.eye(key.shape[2]).expand(*key.shape[:2], -1, -1)
        weights = flex_attention_forward(module, query, key, identity, *args, **kwargs)[0]
        _collected.append((module, weights.transpose(1, 2).double().numpy()))
    return flex_attention_forward(module, query, key, value, *args, **kwargs)


def register_opaque_functions() -> None:
    """Register the functions under their names."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import flash_attention_mask, flex_attention_mask, sdpa_mask

    AttentionInterface.register(FLEX_PROBE, attend_by_flex)
    AttentionMaskInterface.register(FLEX_PROBE, flex_attention_mask)
    for name, mask in ((OPAQUE, flash_attention_mask), (OPAQUE_DENSE, sdpa_mask)):
        AttentionInterface.register(name, attend_like_flash)
        AttentionMaskInterface.register(name, mask)
