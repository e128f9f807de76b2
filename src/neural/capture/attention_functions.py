"""Record calls of torch's attention functions: turn their arguments into queries, keys and a mask.

Each `record_…` function takes the recorder (recorder.py) and then the arguments of the function it
records. `Placement` (placement.py) says at which keys the queries of a call are. `real` is True for
queries that are not padding. In a float mask, a value of HIDING_BIAS or less hides a key.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.capture.attention_call import HIDDEN_SCORE, HIDING_BIAS
from neural.capture.placement import TWO_SEQUENCES, Placement
from neural.capture.recorder import Recorder, is_same_data
from neural.capture.softmax_calls import SoftmaxCall
from neural.capture.tensor_copies import copy_tensor
from neural.nn.lazy_torch import functional, torch
from neural.nn.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


def record_sdpa(
    recorder: Recorder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> None:
    """Record `scaled_dot_product_attention`."""
    (q, real), (k, keys) = _pad_nested(query), _pad_nested(key)
    q, k = to_four_axes(q), to_four_axes(k)
    batch = torch.broadcast_shapes(q.shape[:1], k.shape[:1])
    q, k = (tensor.expand(*batch, *tensor.shape[1:]) for tensor in (q, k))
    if q.shape[1] < k.shape[1]:  # torch broadcasts one query head to all key heads
        q = q.expand(-1, k.shape[1], -1, -1)
    mask, visible = Mask(causal=is_causal, keys=keys), None
    if attn_mask is not None:
        attn_mask = attn_mask.unsqueeze(1) if query.ndim == attn_mask.ndim == 3 else attn_mask
        attn_mask = (
            attn_mask.reshape(-1, *attn_mask.shape[-3:]) if attn_mask.ndim > 4 else attn_mask
        )
        attn_mask, visible = expand_mask(attn_mask, k.shape[2])
    if is_causal:  # with torch's flag the first query is at the first key
        is_cross = recorder.is_cross_attention()
        known = "keys" if is_cross else "queries_and_keys"
        note = TWO_SEQUENCES if is_cross else ""
        placement = Placement(known, k.shape[2], query_offset=0, note=note)
    else:
        placement = recorder.place_queries(q.shape[2], k, visible)
    if attn_mask is not None:
        mask = build_mask(attn_mask[..., : placement.keys], placement)
    k = k[:, :, : placement.keys]
    # copies, because the model may change its tensors in place after the call
    q, k = copy_tensor(q), copy_tensor(k)
    recorder.record_call(recorder.path, q, k, mask, placement, scale=scale, real=real)


def record_multi_head_attention(recorder: Recorder, *args: Any, **kwargs: Any) -> None:
    """Record `multi_head_attention_forward`.

    The function projects queries and keys inside; the projections are repeated here.
    """
    bound = inspect.signature(functional.multi_head_attention_forward).bind(*args, **kwargs)
    bound.apply_defaults()
    options = bound.arguments
    query, key, heads = options["query"], options["key"], options["num_heads"]
    is_cross = not is_same_data(query, key) or options["static_k"] is not None
    biases = (
        options["in_proj_bias"].chunk(3) if options["in_proj_bias"] is not None else (None, None)
    )
    weights = options["q_proj_weight"], options["k_proj_weight"]
    if not options["use_separate_proj_weight"]:
        weights = options["in_proj_weight"].chunk(3)[:2]
    query, key = (x.unsqueeze(1) if x.ndim == 2 else x for x in (query, key))
    q, k = (
        functional.linear(query, weights[0], biases[0]),
        functional.linear(key, weights[1], biases[1]),
    )
    if options["bias_k"] is not None:
        k = torch.cat((k, options["bias_k"].repeat(1, k.shape[1], 1)))
    q, k = (x.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3) for x in (q, k))
    if options["static_k"] is not None:
        k = options["static_k"].unflatten(0, (-1, heads))
    if options["add_zero_attn"]:
        k = functional.pad(k, (0, 0, 0, 1))
    added_keys = k.shape[2] - len(key) if options["static_k"] is None else 0
    padding, attn_mask = options["key_padding_mask"], options["attn_mask"]
    positions = k.shape[2] - added_keys
    placement = (
        Placement("keys", positions, note=TWO_SEQUENCES)
        if is_cross
        else Placement("queries_and_keys", positions, query_offset=0)
    )
    if options["is_causal"] and padding is None and not options["need_weights"]:
        # with torch's flag the first query is at the first key, and added keys count as positions
        is_later = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
        mask = Mask(pairs=~is_later) if added_keys else Mask(causal=True)
        recorder.record_call(
            recorder.path, q, k, mask, replace(placement, query_offset=0), extra_keys=added_keys
        )
        return
    mask = Mask()
    if attn_mask is not None:
        attn_mask = attn_mask if attn_mask.ndim == 2 else attn_mask.unflatten(0, (-1, heads))
        is_bool = attn_mask.dtype == torch.bool
        # in a boolean mask of this function, True hides a key
        attn_mask = ~attn_mask if is_bool else attn_mask
        attn_mask = functional.pad(attn_mask, (0, added_keys), value=True if is_bool else 0.0)
        mask = build_mask(expand_mask(attn_mask, k.shape[2])[0], placement)
    if padding is not None:
        padding = padding if padding.ndim == 2 else padding.unsqueeze(0)
        hidden = padding if padding.dtype == torch.bool else padding <= HIDING_BIAS
        keys = functional.pad(~hidden, (0, added_keys), value=True)
        key_bias = None
        if padding.is_floating_point() and padding.masked_fill(hidden, 0).any():
            key_bias = functional.pad(padding.masked_fill(hidden, 0), (0, added_keys)).unsqueeze(1)
        keys = keys if mask.keys is None else keys & mask.keys
        mask = replace(mask, keys=keys, key_bias=key_bias)
    recorder.record_call(recorder.path, q, k, mask, placement, extra_keys=added_keys)


def record_native_multi_head_attention(
    recorder: Recorder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    width: int,
    heads: int,
    weight: Tensor,
    bias: Tensor,
    *rest: Any,
) -> None:
    """Record `torch._native_multi_head_attention`, the fast path of `nn.MultiheadAttention`."""
    # rest: output weight and bias, mask, need_weights, average_attn_weights, mask_type
    mask, mask_type = rest[2], rest[5]
    _record_self_attention(recorder, recorder.path, query, heads, weight, bias, mask, mask_type)


def record_encoder_layer(
    recorder: Recorder, x: Tensor, width: int, heads: int, weight: Tensor, bias: Tensor, *rest: Any
) -> None:
    """Record the fast path of `nn.TransformerEncoderLayer`, which skips its attention module."""
    # rest[3:7]: norm_first, and eps, weight and bias of the first layer norm
    norm_first, eps, scale, shift, mask, mask_type = *rest[3:7], rest[-2], rest[-1]
    x, real = _pad_nested(x)
    x = functional.layer_norm(x, (width,), scale, shift, eps) if norm_first else x
    path = f"{recorder.path}.self_attn".removeprefix(".")
    _record_self_attention(recorder, path, x, heads, weight, bias, mask, mask_type, real)


def _record_self_attention(
    recorder: Recorder,
    path: str,
    x: Tensor,
    heads: int,
    weight: Tensor,
    bias: Tensor,
    mask: Tensor | None,
    mask_type: int | None,
    real: Tensor | None = None,
) -> None:
    """Record self-attention of `x` (B, T, E) in a fast path of torch.

    `weight` and `bias` project to queries, keys and values together. `mask` hides pairs of
    positions (`mask_type` 0), keys (1), or pairs of every head (2).
    """
    if real is None:
        x, real = _pad_nested(x)
    q, k, _ = (
        projected.unflatten(-1, (heads, -1)).transpose(1, 2)
        for projected in functional.linear(x, weight, bias).chunk(3, dim=-1)
    )
    call_mask, placement = (
        Mask(keys=real),
        Placement("queries_and_keys", k.shape[2], query_offset=0),
    )
    if mask is not None:
        visible = ~mask.bool()
        visible = visible[:, None, None, :] if mask_type == 1 else visible
        call_mask = build_mask(expand_mask(visible, k.shape[2])[0], placement)
    recorder.record_call(path, q, k, call_mask, placement)


def record_attend(
    recorder: Recorder,
    mechanism: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask,
    dropout: float,
    extra: Tensor | None,
) -> None:
    """Record `neural.attend`; its mechanism computes weights from q and k (nn/mechanism.py).

    `extra`: output of the mechanism's learned module, or None.
    """
    recorder.record_mechanism(
        recorder.path, mechanism, q, k, mask, extra, is_cross=recorder.is_cross_attention()
    )


def record_softmax(recorder: Recorder, call: SoftmaxCall) -> int:
    """Record a softmax over keys, in the module where it was called.

    Scores with three axes are (B · H, Q, K) in transformers modules that fold heads into the batch,
    and (B, Q, K) of one head elsewhere. Returns the number of heads; 0 if the call was refused.
    """
    with recorder.reenter_module(call):
        scores, extra_keys = call.reordered_scores
        heads = recorder.running[-1].folded_heads if scores.ndim == 3 else 1
        if scores.ndim not in (3, 4) or len(scores) % heads:
            recorder.refuse(f"its softmax over {tuple(scores.shape)} is not one of (B, H, Q, K)")
            return 0
        scores = scores.unflatten(0, (-1, heads)) if heads > 1 else scores
        _record_scores(recorder, scores, extra_keys)
        return heads if scores.ndim == 3 else scores.shape[1]


def _record_scores(recorder: Recorder, scores: Tensor, extra_keys: int = 0) -> None:
    """Record scores (B, H, Q, K), or (B, Q, K) of one head.

    A recorded call needs queries and keys, which are not known here: they are zeros, and the scores
    are recorded as a bias. The last `extra_keys` keys have no value (learned sinks).
    """
    scores = scores if scores.ndim == 4 else scores.unsqueeze(1)
    k = scores.new_zeros(scores.shape[0], 1, scores.shape[3], 1)
    positions = scores.shape[3] - extra_keys
    if not extra_keys:
        scores = scores.masked_fill(_find_shifted_empty_rows(scores), HIDDEN_SCORE)
    visible = scores[..., :positions] > HIDING_BIAS
    placement = recorder.place_queries(scores.shape[2], k[:, :, :positions], visible)
    if placement.keys < positions:  # drop the empty slots of a cache
        scores = torch.cat((scores[..., : placement.keys], scores[..., positions:]), dim=-1)
    q, k = scores.new_zeros(*scores.shape[:3], 1), k[:, :, : scores.shape[3]]
    if scores.isnan().any():  # calls with queries that are not finite are not measured
        q[...] = float("nan")
    keys = None
    if placement.known_positions == "queries_and_keys":
        sees_key = (scores > HIDING_BIAS).any(dim=1)  # (B, Q, K)
        keys = sees_key.any(dim=1)  # a key that no query may see is padding
        is_hugging_face = bool(recorder.running) and recorder.running[-1].is_hugging_face
        has_padding_mask = recorder.real_queries(q) is not None
        sees_position = sees_key[..., : placement.keys]
        if is_hugging_face and not has_padding_mask and _may_be_padding(sees_position, placement):
            recorder.refuse("some positions see others and are seen by none: pass `real`")
            return
    # If a model subtracts each row's largest score, 0 is the largest of every row, and the scores
    # before that are unknown.
    largest = scores.amax(dim=-1)
    has_logits = bool(largest[largest > HIDING_BIAS].any())
    mask = Mask(bias=scores, keys=keys)
    recorder.record_call(
        recorder.path, q, k, mask, placement, extra_keys=extra_keys, has_logits=has_logits
    )


def _find_shifted_empty_rows(scores: Tensor) -> Bool[Tensor, "B H Q 1"]:
    """True for rows that see no key although all their scores are 0.

    If a model subtracts each row's largest score, the scores of a row of left padding, all equally
    low, become 0: the row seems to see every key. But then every later row would see the last key,
    too. The row is recognised by a later row that does not.
    """
    sees_end = scores[..., -1] > HIDING_BIAS
    is_before_row_without_end = (~sees_end).flip(-1).cumsum(dim=-1).flip(-1) > 0
    return ((scores == 0).all(dim=-1) & is_before_row_without_end).unsqueeze(-1)


def _may_be_padding(sees_key: Bool[Tensor, "B Q K"], placement: Placement) -> bool:
    """Whether a position may be padding that no mask shows, in attention that is not causal.

    Such a position sees others and itself, and no other position sees it. XLNet lets padding attend
    to itself, so its keys are not hidden from every query, as those of padding usually are.
    """
    device, first_query = sees_key.device, placement.query_offset or 0
    query_positions = torch.arange(sees_key.shape[1], device=device) + first_query
    distance = torch.arange(sees_key.shape[2], device=device) - query_positions.unsqueeze(-1)
    if not (sees_key & (distance > 0)).any():
        return False
    sees_other = sees_key & (distance != 0)
    sees_itself = (sees_key & (distance == 0)).any(dim=-1)
    is_seen_by_others = sees_other.any(dim=1)[:, query_positions]
    return bool((sees_itself & ~is_seen_by_others & sees_other.any(dim=-1)).any())


def record_flex_attention(
    recorder: Recorder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Any,
    block_mask: tuple[Any, ...],
    scale: float,
    *rest: Any,
) -> None:
    """Record `flex_attention`.

    `score_mod` may be any function of the scores, so all scores are computed and recorded.
    """
    (B, H, Q, _), K = query.shape, key.shape[2]
    key = key.expand(B, -1, -1, -1).repeat_interleave(H // key.shape[1], dim=1)
    indices = [torch.arange(count, device=query.device) for count in (B, H, Q, K)]
    # the last element of `block_mask` is its function `mask_mod`
    visible = _vmap_over_pairs(block_mask[-1], 0)(*indices)
    scores = _vmap_over_pairs(score_mod, 1)(query.float() @ key.float().mT * scale, *indices)
    _record_scores(recorder, scores.masked_fill(~visible, HIDDEN_SCORE))


def _vmap_over_pairs(function: Any, leading_args: int) -> Any:
    """Vectorize a function of the indices (b, h, q, k) of one pair over all pairs.

    `leading_args` arguments before the indices are tensors (B, H, Q, K).
    """
    for axis in (3, 2, 1, 0):
        index_dims = tuple(0 if index == axis else None for index in range(4))
        function = torch.vmap(function, in_dims=(0,) * leading_args + index_dims)
    return function


def expand_mask(
    mask: Tensor, keys: int
) -> tuple[Float[Tensor, "b h q K"], Bool[Tensor, "b h q K"]]:
    """Give a torch mask four axes and expand the last one to `keys` keys.

    The mask is boolean (True is visible) or a bias. Also returns it as a boolean mask.
    """
    mask = mask[(None,) * (4 - mask.ndim)]
    mask = mask.expand(*mask.shape[:3], keys)
    return mask, mask if mask.dtype == torch.bool else mask > HIDING_BIAS


def build_mask(mask: Tensor, placement: Placement) -> Mask:
    """Convert a torch mask with four axes: booleans are pairs, floats are biases."""
    visible = mask if mask.dtype == torch.bool else mask > HIDING_BIAS
    has_bias = mask.is_floating_point() and bool(mask.masked_fill(~visible, 0).any())
    real = None
    if placement.known_positions == "queries_and_keys":
        real = visible.any(dim=2).any(dim=1)  # a key that no query may see is padding
        real = None if real.all() else real
        if visible.shape[1:3] == (1, 1) and not has_bias:
            return Mask(keys=real)
    if has_bias:
        return Mask(keys=real, bias=mask)
    return Mask(keys=real, pairs=None if visible.all() else visible)


def _pad_nested(x: Tensor) -> tuple[Tensor, Bool[Tensor, "B T"] | None]:
    """Pad a nested tensor; also returns which positions are not padding.

    Any other tensor is returned unchanged, with None.
    """
    if not x.is_nested:
        return x, None
    lengths = torch.tensor([example.shape[-2] for example in x.unbind()], device=x.device)
    padded = torch.nested.to_padded_tensor(x, 0.0)
    return padded, torch.arange(padded.shape[-2], device=x.device) < lengths.unsqueeze(-1)


def to_four_axes(x: Tensor) -> Float[Tensor, "B H T D"]:
    """Reshape (…, T, D) to (B, H, T, D); of three axes, the first is the batch."""
    if x.ndim == 3:
        return x.unsqueeze(1)
    return x.reshape(-1, *x.shape[-3:]) if x.ndim > 4 else x[(None,) * (4 - x.ndim)]
