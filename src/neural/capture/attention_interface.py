"""Record attention functions of Hugging Face transformers that torch functions do not show.

Every model of transformers takes its attention function from one registry, `AttentionInterface`,
by the name in `attn_implementation`: flash-attn, kernels of the hub, or a function that a user
registered. Such a function may be opaque: it calls no torch function that hooks.py intercepts. Then
its arguments are recorded here. The function itself runs unchanged.

What an opaque function does with its arguments is not known: whether it is causal, how it counts a
sliding window, whether a sequence is packed from several documents. So the possible masks are tried
one after the other, and the first whose softmax weights times the values give the function's own
output is recorded. If none does, the module is refused: no number is better than a wrong one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.capture.attention_call import (
    HIDDEN_SCORE,
    HIDING_BIAS,
    MIN_VISIBLE_SCORE,
    AttentionCall,
    RowBlock,
)
from neural.capture.placement import TWO_SEQUENCES, Placement
from neural.capture.recorder import Recorder
from neural.nn.attention.self import masked_softmax
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

INTERFACE_MODULE = "transformers.modeling_utils"
"""Module of the registry of attention functions."""
TRANSPARENT_NAMES = {"eager", "sdpa", "flex_attention"}
"""Implementations whose torch functions are intercepted (hooks.py)."""
MAX_CHECKED_ROWS = 64
"""Rows whose output is compared; all rows if there are fewer."""
TOLERANCES = {"float64": 1e-6, "float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2}
"""Largest difference of an output, relative to the largest value; by dtype of the output."""


class InterfaceCall(NamedTuple):
    """Arguments of an attention function of transformers."""

    module: Any
    q: Float[Tensor, "B H Q D"]
    k: Float[Tensor, "B G K D"]
    v: Float[Tensor, "B G K E"]
    mask: Any
    """A mask with four axes, a padding mask (B, K), or None."""
    options: dict[str, Any]
    output: Float[Tensor, "B H Q E"]

    @property
    def scale(self) -> float:
        """Factor of the dot products."""
        scale = self.options.get("scaling")
        return self.q.shape[-1] ** -0.5 if scale is None else float(scale)

    @property
    def soft_cap(self) -> float | None:
        """Scores s become c · tanh(s / c); None without a cap."""
        return self.options.get("softcap")

    @property
    def sinks(self) -> Tensor | None:
        """Learned logits of keys without a value, one per head; None without any."""
        return self.options.get("s_aux")


@contextmanager
def track_attention_interface(recorder: Recorder) -> Iterator[None]:
    """Record the calls of opaque attention functions of transformers inside the block."""
    if INTERFACE_MODULE not in sys.modules:
        yield
        return
    registry = getattr(import_module(INTERFACE_MODULE), "AttentionInterface", None)
    names = [name for name in ("get_interface", "__getitem__") if hasattr(registry, name)]
    originals = {name: registry.__dict__.get(name) for name in names}

    def wrap_lookup(lookup: Callable[..., Any]) -> Callable[..., Any]:
        def look_up(self: Any, name: Any, *args: Any) -> Any:
            function = lookup(self, name, *args)
            is_wrapped = isinstance(function, partial) and function.func is _call_and_record
            if name in TRANSPARENT_NAMES or is_wrapped or not callable(function):
                return function
            return partial(_call_and_record, recorder, function)

        return look_up

    for name in names:
        setattr(registry, name, wrap_lookup(getattr(registry, name)))
    try:
        yield
    finally:
        for name, original in originals.items():
            if original is None:  # inherited
                delattr(registry, name)
            else:
                setattr(registry, name, original)


def _call_and_record(
    recorder: Recorder,
    function: Callable[..., Any],
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any = None,
    *args: Any,
    **options: Any,
) -> Any:
    """Call an attention function, then record it unless the calls inside it were recorded."""
    arguments = (module, query, key, value, attention_mask, *args)
    if recorder.is_silent or not recorder.running:
        return function(*arguments, **options)
    recognised_before = recorder.recognised_count
    result = function(*arguments, **options)
    if recorder.recognised_count > recognised_before:
        return result
    with torch._C.DisableTorchFunction(), torch.no_grad():
        output = _find_output(result, query, value)
        if output is None:
            recorder.refuse("its attention function returns a shape that is not known")
        elif options.get("dropout") and module.training:
            recorder.refuse("its attention function applies dropout: call model.eval() first")
        else:
            _record(
                recorder,
                InterfaceCall(module, query, key, value, attention_mask, options, output),
            )
    return result


def _find_output(result: Any, query: Tensor, value: Tensor) -> Tensor | None:
    """The output as (B, H, Q, E), which functions of transformers return as (B, Q, H, E)."""
    output = result[0] if isinstance(result, tuple | list) else result
    if not isinstance(output, torch.Tensor):
        return None
    batch, heads, queries, _ = query.shape
    width = value.shape[-1]
    if tuple(output.shape) == (batch, queries, heads, width):
        return output.transpose(1, 2)
    if tuple(output.shape) == (batch, queries, heads * width):
        return output.unflatten(-1, (heads, width)).transpose(1, 2)
    return output if tuple(output.shape) == (batch, heads, queries, width) else None


def _record(recorder: Recorder, call: InterfaceCall) -> None:
    """Record a call with the first possible mask that explains its output."""
    is_cross = recorder.is_cross_attention()
    keys = call.k.shape[2]
    for mask in _list_masks(call):
        offset = None if is_cross else keys - call.q.shape[2]
        if offset is not None and offset < 0:
            continue
        placement = (
            Placement("keys", keys, note=TWO_SEQUENCES)
            if is_cross
            else Placement("queries_and_keys", keys, query_offset=offset)
        )
        if call.soft_cap is None and call.sinks is None:
            candidate = AttentionCall(call.q, call.k, mask, scale=call.scale)
            if _explains_output(call, partial(_compute_rows, candidate)):
                recorder.record_call(
                    recorder.path, call.q.clone(), call.k.clone(), mask, placement, scale=call.scale
                )
                return
        else:
            scores = _compute_scores(call, mask)
            if _explains_output(call, partial(_normalize_rows, scores)):
                # neither a cap nor a sink is part of an AttentionCall: the scores are the bias
                q = scores.new_zeros(*scores.shape[:3], 1)
                k = scores.new_zeros(scores.shape[0], 1, scores.shape[3], 1)
                dense = Mask(bias=scores, keys=mask.keys if call.sinks is None else None)
                extra_keys = scores.shape[3] - keys
                recorder.record_call(recorder.path, q, k, dense, placement, extra_keys=extra_keys)
                return
    recorder.refuse(
        "the output of its attention function is not that of a softmax over its queries and keys "
        'with any known mask; load the model with attn_implementation="sdpa" or "eager"'
    )


def _list_masks(call: InterfaceCall) -> Iterator[Mask]:
    """Masks that the function may have applied, the most likely first."""
    options = call.options
    (batch, _, queries, _), keys = call.q.shape, call.k.shape[2]
    given = call.mask
    if given is not None and not isinstance(given, torch.Tensor):
        return
    if given is not None and given.ndim == 4:
        dense = given[..., :keys].expand(-1, -1, queries, -1)
        is_bool = dense.dtype == torch.bool
        visible = dense if is_bool else dense > HIDING_BIAS
        has_bias = not is_bool and bool(dense.masked_fill(~visible, 0).any())
        yield Mask(bias=dense.float()) if has_bias else Mask(pairs=visible)
        if not has_bias:
            yield Mask(causal=True, pairs=visible)
        return
    padding = None
    if given is not None and given.ndim == 2 and tuple(given.shape) == (batch, keys):
        padding = given.bool()
        padding = None if padding.all() else padding
    elif given is not None:
        return
    is_causal = options.get("is_causal")
    is_causal = getattr(call.module, "is_causal", True) if is_causal is None else is_causal
    window = options.get("sliding_window")
    reaches = [None] if window is None else [window - 1, window, None]
    documents = [number for number in (_number_documents(call),) if number is not None]
    for segments in (*documents, None):
        for reach in reaches:
            for causal in (bool(is_causal), not is_causal):
                yield Mask(causal=causal, keys=padding, reach=reach, segments=segments)


def _number_documents(call: InterfaceCall) -> Tensor | None:
    """Document number of each position (1, K) of a packed sequence; None if it is not packed."""
    keys = call.k.shape[2]
    ends = call.options.get("cu_seq_lens_k", call.options.get("cu_seqlens_k"))
    if call.q.shape[0] != 1 or call.q.shape[2] != keys:
        return None
    positions = torch.arange(keys, device=call.q.device)
    if isinstance(ends, torch.Tensor):
        return torch.bucketize(positions, ends[1:].to(positions), right=True).unsqueeze(0)
    position_ids = call.options.get("position_ids")
    if isinstance(position_ids, torch.Tensor) and position_ids.shape[-1] == keys:
        starts = position_ids.reshape(-1, keys)[0] == 0
        return starts.cumsum(0).unsqueeze(0) if int(starts.sum()) > 1 else None
    return None


def _compute_scores(call: InterfaceCall, mask: Mask) -> Float[Tensor, "B H Q K"]:
    """All scores, with cap and mask; learned sinks as the last key."""
    groups = call.q.shape[1] // call.k.shape[1]
    k = call.k.float().repeat_interleave(groups, dim=1)
    scores = call.q.float() @ k.mT * call.scale
    if call.soft_cap is not None:
        scores = call.soft_cap * torch.tanh(scores / call.soft_cap)
    bias = mask.combine_biases()
    scores = scores if bias is None else scores + bias
    visible = mask.to_keep_mask(*scores.shape[-2:], scores.device)
    if visible is not None:
        scores = scores.masked_fill(~visible, HIDDEN_SCORE)
    if call.sinks is None:
        return scores
    sinks = call.sinks.float().reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.cat((scores, sinks), dim=-1)


def _compute_rows(candidate: AttentionCall, rows: Tensor) -> Float[Tensor, "B H R K"]:
    """Weights of some rows; one block of weights is in memory at a time."""
    everything = slice(0, candidate.batch), slice(0, candidate.heads)
    weights = [
        candidate.compute_maps(RowBlock(*everything, slice(row, row + 1))).weights
        for row in rows.tolist()
    ]
    return torch.cat(weights, dim=2)


def _normalize_rows(scores: Tensor, rows: Tensor) -> Float[Tensor, "B H R K"]:
    """Weights of some rows of scores."""
    selected = scores[:, :, rows]
    return masked_softmax(selected, selected > MIN_VISIBLE_SCORE)


def _explains_output(
    call: InterfaceCall, compute_rows: Callable[[Tensor], Float[Tensor, "B H R K"]]
) -> bool:
    """Whether weights times values are the function's output, in up to MAX_CHECKED_ROWS rows.

    The first and the last rows are among them: causal masks show at the first, windows at the last.
    """
    queries, keys = call.q.shape[2], call.k.shape[2]
    count = min(queries, MAX_CHECKED_ROWS)
    rows = torch.linspace(0, queries - 1, count).round().long().unique()
    weights = compute_rows(rows)[..., :keys]
    values = call.v.float().repeat_interleave(call.q.shape[1] // call.v.shape[1], dim=1)
    expected = weights.float() @ values
    actual = call.output[:, :, rows].float()
    # a query that sees nothing has no defined output: functions return zeros, means or NaN
    is_defined = weights.sum(dim=-1) > 0.5
    difference = (expected - actual).abs().amax(dim=-1)[is_defined]
    tolerance = TOLERANCES.get(str(call.output.dtype).removeprefix("torch."), 3e-2)
    limit = tolerance * max(1.0, float(values.abs().max()))
    return bool((difference <= limit).all())  # NaN is not below the limit
