"""What the functions of torch were given, as attention: queries, keys and a mask, whatever way they came.

Each takes the recorder and then exactly what the function takes that it is named after.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.modules.late import functional, torch
from neural.modules.mask import Mask
from neural.tracking.look import HIDDEN, HIDING
from neural.tracking.placement import TWO_SEQUENCES, Placement
from neural.tracking.recorder import Recorder, is_same_data
from neural.tracking.softmax_calls import SoftmaxCall

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

def fused(
    recorder: Recorder, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> None:  # fmt: skip
    """`scaled_dot_product_attention`."""
    (q, real), (k, keys) = (_four(*_padded(one)) for one in (query, key))
    lead = torch.broadcast_shapes(q.shape[:1], k.shape[:1])
    q, k = (one.expand(*lead, *one.shape[1:]) for one in (q, k))
    if q.shape[1] < k.shape[1]:
        q = q.expand(-1, k.shape[1], -1, -1)
    mask, visible = Mask(causal=is_causal, keys=keys), None
    if attn_mask is not None:
        attn_mask = attn_mask.unsqueeze(1) if query.ndim == attn_mask.ndim == 3 else attn_mask
        attn_mask = attn_mask.reshape(-1, *attn_mask.shape[-3:]) if attn_mask.ndim > 4 else attn_mask
        attn_mask, visible = _spread(attn_mask, k.shape[2])
    if is_causal:   # torch's flag puts the first query at the first key
        axis, note = ("keys", TWO_SEQUENCES) if recorder.is_cross_attention() else ("shared", "")
        placement = Placement(axis, k.shape[2], first=0, note=note)
    else:
        placement = recorder.place(q.shape[2], k, visible)
    if attn_mask is not None:
        mask = _rules(attn_mask[..., : placement.keys], placement)
    k = k[:, :, : placement.keys]
    recorder.add(recorder.path, q.clone(), k.clone(), mask, placement, scale=scale, real=real)


def multi_head(recorder: Recorder, *args: Any, **named: Any) -> None:
    """`multi_head_attention_forward`: the projections are made again."""
    given = inspect.signature(functional.multi_head_attention_forward).bind(*args, **named)
    given.apply_defaults()
    see = given.arguments
    query, key, heads = see["query"], see["key"], see["num_heads"]
    is_cross = not is_same_data(query, key) or see["static_k"] is not None
    bias = see["in_proj_bias"].chunk(3) if see["in_proj_bias"] is not None else (None, None)
    weight = see["q_proj_weight"], see["k_proj_weight"]
    if not see["use_separate_proj_weight"]:
        weight = see["in_proj_weight"].chunk(3)[:2]
    query, key = (one.unsqueeze(1) if one.ndim == 2 else one for one in (query, key))
    q, k = functional.linear(query, weight[0], bias[0]), functional.linear(key, weight[1], bias[1])
    if see["bias_k"] is not None:
        k = torch.cat((k, see["bias_k"].repeat(1, k.shape[1], 1)))
    q, k = (one.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3) for one in (q, k))
    if see["static_k"] is not None:
        k = see["static_k"].unflatten(0, (-1, heads))
    if see["add_zero_attn"]:
        k = functional.pad(k, (0, 0, 0, 1))
    added = k.shape[2] - len(key) if see["static_k"] is None else 0
    padding, rule = see["key_padding_mask"], see["attn_mask"]
    positions = k.shape[2] - added
    axis, note = ("keys", TWO_SEQUENCES) if is_cross else ("shared", "")
    placement = Placement(axis, positions, first=0 if axis == "shared" else None, note=note)
    if see["is_causal"] and padding is None and not see["need_weights"]:
        # torch's flag puts the first query at the first key, and takes added keys for positions
        ahead = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
        mask = Mask(pairs=~ahead) if added else Mask(causal=True)
        recorder.add(recorder.path, q, k, mask, replace(placement, first=0), extra_keys=added)
        return
    mask = Mask()
    if rule is not None:
        rule = rule if rule.ndim == 2 else rule.unflatten(0, (-1, heads))
        rule = ~rule if rule.dtype == torch.bool else rule
        rule = functional.pad(rule, (0, added), value=True if rule.dtype == torch.bool else 0.0)
        mask = _rules(_spread(rule, k.shape[2])[0], placement)
    if padding is not None:
        padding = padding if padding.ndim == 2 else padding.unsqueeze(0)
        hidden = padding if padding.dtype == torch.bool else padding <= HIDING
        keys = functional.pad(~hidden, (0, added), value=True)
        by_key = None
        if padding.is_floating_point() and padding.masked_fill(hidden, 0).any():
            by_key = functional.pad(padding.masked_fill(hidden, 0), (0, added)).unsqueeze(1)
        keys = keys if mask.keys is None else keys & mask.keys
        mask = replace(mask, keys=keys, key_bias=by_key)
    recorder.add(recorder.path, q, k, mask, placement, extra_keys=added)


def native(
    recorder: Recorder, query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, weight: Tensor, bias: Tensor,
    *rest: Any,
) -> None:  # fmt: skip
    """The fast path of `nn.MultiheadAttention`."""
    mask, mask_type = rest[2], rest[5]
    _self_attention(recorder, recorder.path, query, heads, weight, bias, mask, mask_type)


def encoder_layer(
    recorder: Recorder, x: Tensor, width: int, heads: int, weight: Tensor, bias: Tensor, *rest: Any
) -> None:
    """The fast path of `nn.TransformerEncoderLayer`, which never calls the attention inside it."""
    norm_first, eps, scale, shift, mask, mask_type = *rest[3:7], rest[-2], rest[-1]
    x, real = _padded(x)
    x = functional.layer_norm(x, (width,), scale, shift, eps) if norm_first else x
    path = f"{recorder.path}.self_attn".removeprefix(".")
    _self_attention(recorder, path, x, heads, weight, bias, mask, mask_type, real)


def _self_attention(
    recorder: Recorder, path: str, x: Tensor, heads: int, weight: Tensor, bias: Tensor, mask: Tensor | None,
    mask_type: int | None, real: Tensor | None = None,
) -> None:  # fmt: skip
    """Of torch's fast path: `mask` hides, over pairs of positions (0), keys (1), or pairs of every head (2)."""
    if real is None:
        x, real = _padded(x)
    q, k, _ = (
        one.unflatten(-1, (heads, -1)).transpose(1, 2) for one in functional.linear(x, weight, bias).chunk(3, dim=-1)
    )
    rules, placement = Mask(keys=real), Placement("shared", k.shape[2], first=0)
    if mask is not None:
        kept = ~mask.bool()
        kept = kept[:, None, None, :] if mask_type == 1 else kept
        rules = _rules(_spread(kept, k.shape[2])[0], placement)
    recorder.add(path, q, k, rules, placement)


def ours(
    recorder: Recorder, mechanism: Any, q: Tensor, k: Tensor, v: Tensor, mask: Mask, dropout: float,
    extra: Tensor | None,
) -> None:  # fmt: skip
    """`neural.attend`."""
    recorder.by_mechanism(recorder.path, mechanism, q, k, mask, extra, cross=recorder.is_cross_attention())


def softmax(recorder: Recorder, call: SoftmaxCall) -> None:
    """A softmax over keys, in the module where it was called."""
    with recorder.back_in(call):
        scores, extra_keys = call.reordered
        heads = recorder.running[-1].folded_heads if scores.ndim == 3 else 1
        if scores.ndim not in (3, 4) or len(scores) % heads:
            recorder.refuse(f"its softmax over {tuple(scores.shape)} is not one of (B, H, Q, K)")
            return
        scores = scores.unflatten(0, (-1, heads)) if heads > 1 else scores
        _written_out(recorder, scores, extra_keys)


def _written_out(recorder: Recorder, scores: Tensor, extra_keys: int = 0) -> None:
    """Scores are what is added to products of nothing; of (B, Q, K) there is one head.

    The last `extra_keys` are keys without a value.
    """
    scores = scores if scores.ndim == 4 else scores.unsqueeze(1)
    k = scores.new_zeros(scores.shape[0], 1, scores.shape[3], 1)
    positions = scores.shape[3] - extra_keys
    if not extra_keys:
        scores = scores.masked_fill(_lost_rows(scores), HIDDEN)
    visible = scores[..., :positions] > HIDING
    placement = recorder.place(scores.shape[2], k[:, :, :positions], visible)
    if placement.keys < positions:   # without the empty slots of a cache
        scores = torch.cat((scores[..., : placement.keys], scores[..., positions:]), dim=-1)
    q, k = scores.new_zeros(*scores.shape[:3], 1), k[:, :, : scores.shape[3]]
    if scores.isnan().any():
        q[...] = float("nan")
    keys = None
    if placement.axis == "shared":
        seen_by = (scores > HIDING).any(dim=1)
        keys = seen_by.any(dim=1)   # a key that nobody may see is padding
        is_foreign = bool(recorder.running) and recorder.running[-1].is_hugging_face
        is_given = recorder.real_queries(q) is not None
        positions = seen_by[..., : placement.keys]
        if is_foreign and not is_given and _may_be_padding(positions, placement):
            recorder.refuse("some positions see others and are seen by none: give `real`")
            return
    # a model that subtracts each row's largest score has 0 as the largest of every row
    largest = scores.amax(dim=-1)
    has_logits = bool(largest[largest > HIDING].any())
    mask = Mask(bias=scores, keys=keys)
    recorder.add(recorder.path, q, k, mask, placement, extra_keys=extra_keys, has_logits=has_logits)


def _lost_rows(scores: Tensor) -> Bool[Tensor, "B H Q 1"]:
    """Rows that see nothing, though all their scores are 0: the model subtracted the largest.

    Such a row of left padding seems to see every key, although a later row does not.
    """
    sees_end = scores[..., -1] > HIDING
    before_hidden = (~sees_end).flip(-1).cumsum(dim=-1).flip(-1) > 0
    return ((scores == 0).all(dim=-1) & before_hidden).unsqueeze(-1)


def _may_be_padding(seen_by: Bool[Tensor, "B Q K"], placement: Placement) -> bool:
    """Whether a position sees others and is seen by none, in attention that is not causal.

    XLNet lets padding attend to itself, so that its keys are not hidden from every query.
    """
    own = torch.arange(seen_by.shape[1], device=seen_by.device) + (placement.first or 0)
    ahead = torch.arange(seen_by.shape[2], device=seen_by.device) - own.unsqueeze(-1)
    if not (seen_by & (ahead > 0)).any():
        return False
    others = seen_by & (ahead != 0)
    sees_itself = (seen_by & (ahead == 0)).any(dim=-1)
    is_seen = others.any(dim=1)[:, own]
    return bool((sees_itself & ~is_seen & others.any(dim=-1)).any())


def flex(
    recorder: Recorder, query: Tensor, key: Tensor, value: Tensor, score_mod: Any, block_mask: tuple[Any, ...],
    scale: float, *rest: Any,
) -> None:  # fmt: skip
    """`flex_attention`: any function may change its scores, so they are written out, all of them."""
    (B, H, Q, _), K = query.shape, key.shape[2]
    key = key.expand(B, -1, -1, -1).repeat_interleave(H // key.shape[1], dim=1)
    places = [torch.arange(count, device=query.device) for count in (B, H, Q, K)]
    kept = _everywhere(block_mask[-1], 0)(*places)
    scores = _everywhere(score_mod, 1)(query.float() @ key.float().mT * scale, *places)
    _written_out(recorder, scores.masked_fill(~kept, HIDDEN))


def _everywhere(function: Any, before: int) -> Any:
    """A function of one score and one place as a function of all of them; `before` arguments come before the place."""
    for axis in (3, 2, 1, 0):
        function = torch.vmap(function, in_dims=(0,) * before + tuple(0 if at == axis else None for at in range(4)))
    return function


def _spread(mask: Tensor, keys: int) -> tuple[Float[Tensor, "b h q K"], Bool[Tensor, "b h q K"]]:
    """A mask of torch's functions with four axes, and which keys it lets a query see."""
    mask = mask[(None,) * (4 - mask.ndim)]
    mask = mask.expand(*mask.shape[:3], keys)
    return mask, mask if mask.dtype == torch.bool else mask > HIDING


def _rules(mask: Tensor, placement: Placement) -> Mask:
    """The rules of a mask with four axes."""
    kept = mask if mask.dtype == torch.bool else mask > HIDING
    biased = mask.is_floating_point() and bool(mask.masked_fill(~kept, 0).any())
    real = None
    if placement.axis == "shared":
        real = kept.any(dim=2).any(dim=1)   # a key that nobody may see is padding
        real = None if real.all() else real
        if kept.shape[1:3] == (1, 1) and not biased:
            return Mask(keys=real)
    if biased:
        return Mask(keys=real, bias=mask)
    return Mask(keys=real, pairs=None if kept.all() else kept)


def _padded(x: Tensor) -> tuple[Tensor, Bool[Tensor, "B T"] | None]:
    """A nested tensor as a plain one, and which positions are real."""
    if not x.is_nested:
        return x, None
    lengths = torch.tensor([one.shape[-2] for one in x.unbind()], device=x.device)
    full = torch.nested.to_padded_tensor(x, 0.0)
    return full, torch.arange(full.shape[-2], device=x.device) < lengths.unsqueeze(-1)


def _four(x: Tensor, real: Tensor | None) -> tuple[Float[Tensor, "B H T D"], Tensor | None]:
    """(…, T, D) with one axis for the batch and one for heads: of three, the first is the batch."""
    if x.ndim == 3:
        return x.unsqueeze(1), real
    return x.reshape(-1, *x.shape[-3:]) if x.ndim > 4 else x[(None,) * (4 - x.ndim)], real


