"""Record attention functions of Hugging Face transformers that torch functions do not show.

Every model of transformers takes its attention function from one registry, `AttentionInterface`,
by the name in `attn_implementation`: flash-attn, kernels of the hub, or a function that a user
registered. Such a function may be opaque: it calls no torch function that hooks.py intercepts. Then
its arguments are recorded here. The function itself runs unchanged.

What an opaque function does with its arguments is not known: whether it is causal, how it counts a
sliding window, whether a sequence is packed from several documents, whether it applies a soft cap.
So every possible interpretation of the arguments is tried: softmax weights times the values must
give the function's own output. The interpretation that fits best is recorded. If none fits, the
module is refused:
no number is better than a wrong one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.capture.attention_call import AttentionCall, RowBlock
from neural.capture.attention_functions import build_mask, expand_mask
from neural.capture.placement import Placement
from neural.capture.recorder import Recorder
from neural.capture.tensor_copies import copy_tensor
from neural.capture.threads import substitute
from neural.nn.lazy_torch import functional, torch
from neural.nn.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

INTERFACE_MODULE = "transformers.modeling_utils"
"""Module of the registry of attention functions."""
TRANSPARENT_NAMES = {"eager", "sdpa", "flex_attention"}
"""Implementations whose torch functions are intercepted (hooks.py)."""
MAX_CHECKED_ROWS = 64
"""Rows whose output is compared; all rows if there are fewer."""
CHECKED_BLOCK = 8
"""Rows that are compared together: their weights are in memory."""
TOLERANCES = {"float64": 1e-6, "float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2}
"""Largest difference of an output, relative to the largest value; by dtype of the output."""
CERTAIN_SHARE = 0.02
"""With a difference below this share of the tolerance, no further interpretation is tried."""
TRANSPARENT_MODULE = "transformers."
NOT_EXPLAINED = (
    "the output of its attention function is not that of a softmax over its queries and keys "
    'with any known mask; load the model with attn_implementation="sdpa" or "eager"'
)
UNKNOWN_SHAPES = "its attention function takes or returns shapes that are not known"
EQUAL_VALUES = (
    "the values of all its keys are equal, so that the weights of its attention function cannot be "
    "checked; use an input with different tokens"
)


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


@dataclass(frozen=True)
class Interpretation:
    """One way to read the arguments of an attention function: what it may have computed."""

    mask: Mask
    """Mask of the keys in use."""
    keys: int
    """Number of leading keys in use; the others are empty slots of a static cache."""
    placement: Placement
    bias: Float[Tensor, "#B H Q K"] | None = None
    """Relative positions, added to the scores."""
    soft_cap: float | None = None
    """Scores s become c · tanh(s / c); None without a cap."""
    sinks: Tensor | None = None
    """Learned logits of keys without a value, one per head; None without any."""
    real: Bool[Tensor, "B Q"] | None = None
    """Queries that are not padding; the output of others is not defined."""

    def to_call(self, call: InterfaceCall) -> AttentionCall:
        """The attention call that it describes."""
        q, k = call.q, call.k[:, :, : self.keys]
        mask, scale, extra_keys = self.mask, call.scale, 0
        if self.bias is not None:
            bias = self.bias[..., : self.keys].float()
            mask = replace(mask, bias=bias if mask.bias is None else mask.bias + bias)
        if self.soft_cap is not None:
            # a cap is not part of an AttentionCall: the scores become a bias
            groups = q.shape[1] // k.shape[1]
            scores = q.float() @ k.float().repeat_interleave(groups, dim=1).mT * scale
            scores = self.soft_cap * torch.tanh(scores / self.soft_cap)
            mask = replace(mask, bias=scores if mask.bias is None else mask.bias + scores)
            q = q.new_zeros(*q.shape[:3], 1, dtype=torch.float32)
            k = q.new_zeros(k.shape[0], 1, self.keys, 1)
        if self.sinks is not None:
            mask, k, extra_keys = _append_sink(mask, q, k, self.sinks), _append_key(k), 1
        return AttentionCall(
            q,
            k,
            mask,
            scale=scale,
            query_offset=self.placement.query_offset,
            extra_keys=extra_keys,
            known_positions=self.placement.known_positions,
        )


@contextmanager
def track_attention_interface(recorder: Recorder) -> Iterator[None]:
    """Record the calls of opaque attention functions of transformers inside the block."""
    if INTERFACE_MODULE not in sys.modules:
        yield
        return
    registry = getattr(import_module(INTERFACE_MODULE), "AttentionInterface", None)
    names = [name for name in ("get_interface", "__getitem__") if hasattr(registry, name)]

    def look_up(lookup: Callable[..., Any], self: Any, name: Any, *args: Any) -> Any:
        function = lookup(self, name, *args)
        # a method of the registry may call the other one
        is_wrapped = isinstance(function, partial) and function.args[:1] == (recorder,)
        module = getattr(function, "__module__", None) or ""
        # a user may have registered another function under one of these names
        is_transparent = name in TRANSPARENT_NAMES and module.startswith(TRANSPARENT_MODULE)
        if is_transparent or is_wrapped or not callable(function):
            return function
        return partial(_call_and_record, recorder, function)

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(substitute(registry, name, look_up))
        yield


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
        output = _find_output(result, query, key, value)
        if output is None:
            recorder.refuse(UNKNOWN_SHAPES)
        elif options.get("dropout") and module.training:
            recorder.refuse("its attention function applies dropout: call model.eval() first")
        else:
            _record(
                recorder,
                InterfaceCall(module, query, key, value, attention_mask, options, output),
            )
    if output is None or not recorder.has_edits:
        return result
    with torch._C.DisableTorchFunction():
        output = _find_output(result, query, key, value)  # again: a view with gradients
        assert output is not None
        edited = recorder.edit_output(output, lambda: value)
        return result if edited is output else _replace_output(result, edited)


def _find_output(result: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor | None:
    """The output as (B, H, Q, E), which functions of transformers return as (B, Q, H, E).

    None if the arguments or the output have other shapes than those of attention.
    """
    output = result[0] if isinstance(result, tuple | list) else result
    tensors = (output, q, k, v)
    if not all(isinstance(item, torch.Tensor) for item in tensors) or k.ndim != 4 or q.ndim != 4:
        return None
    (batch, heads, queries, width), value_width = q.shape, v.shape[-1]
    if (k.shape[0], k.shape[3], v.shape[:3]) != (batch, width, k.shape[:3]) or heads % k.shape[1]:
        return None
    if tuple(output.shape) == (batch, queries, heads, value_width):
        return output.transpose(1, 2)
    if tuple(output.shape) == (batch, queries, heads * value_width):
        return output.unflatten(-1, (heads, value_width)).transpose(1, 2)
    return output if tuple(output.shape) == (batch, heads, queries, value_width) else None


def _replace_output(result: Any, edited: Float[Tensor, "B H Q E"]) -> Any:
    """The result of an attention function with another output, in the layout of the old one."""
    output = result[0] if isinstance(result, tuple | list) else result
    transposed = edited.transpose(1, 2)
    # as in `_find_output`, (B, Q, H, E) comes first if there are as many queries as heads
    is_transposed = output.ndim == 3 or output.shape == transposed.shape
    edited = (transposed if is_transposed else edited).reshape(output.shape)
    return edited if output is result else type(result)((edited, *result[1:]))


def _record(recorder: Recorder, call: InterfaceCall) -> None:
    """Record a call with the interpretation that explains its output best."""
    if not (call.q.isfinite().all() and call.k.isfinite().all()):
        # recorded without weights, as every call whose queries are not finite
        placement = Placement("none", call.k.shape[2])
        recorder.record_call(recorder.path, call.q.clone(), call.k.clone(), Mask(), placement)
        return
    if not call.v.isfinite().all():
        recorder.refuse(NOT_EXPLAINED)
        return
    if _has_equal_values(call):
        recorder.refuse(EQUAL_VALUES)
        return
    best: tuple[float, Interpretation, AttentionCall] | None = None
    tolerance = TOLERANCES.get(str(call.output.dtype).removeprefix("torch."), 3e-2)
    limit = tolerance * float(call.v.abs().max())
    for interpretation in _list_interpretations(recorder, call):
        candidate = interpretation.to_call(call)
        largest, mean_square = _compare_output(call, interpretation, candidate)
        is_possible = largest <= limit  # NaN is not below the limit
        if is_possible and (best is None or mean_square < best[0]):
            best = mean_square, interpretation, candidate
        if largest <= CERTAIN_SHARE * limit:
            break
    if best is None:
        recorder.refuse(NOT_EXPLAINED)
        return
    _, interpretation, explained_call = best
    recorder.record_call(
        recorder.path,
        copy_tensor(explained_call.q),
        copy_tensor(explained_call.k),
        explained_call.mask,
        interpretation.placement,
        scale=explained_call.scale,
        extra_keys=explained_call.extra_keys,
    )


def _has_equal_values(call: InterfaceCall) -> bool:
    """Whether all keys have the same value: then every distribution gives the same output."""
    difference = (call.v - call.v[:, :, :1]).abs().max()
    return call.v.shape[2] > 1 and bool(difference <= 1e-6 * call.v.abs().max())


def _list_interpretations(recorder: Recorder, call: InterfaceCall) -> Iterator[Interpretation]:
    """Ways to read the arguments, the most likely first."""
    options = call.options
    # arguments that a function may also ignore: with them, then without
    biases, caps, sinks = (
        [None] if options.get(name) is None else [options[name], None]
        for name in ("position_bias", "softcap", "s_aux")
    )
    for bias in biases:
        for cap in caps:
            for sink in sinks:
                for interpretation in _list_masks(recorder, call):
                    yield replace(interpretation, bias=bias, soft_cap=cap, sinks=sink)


def _list_masks(recorder: Recorder, call: InterfaceCall) -> Iterator[Interpretation]:
    """Masks that the function may have applied."""
    (batch, _, queries, _), keys = call.q.shape, call.k.shape[2]
    given = call.mask
    if given is not None and not isinstance(given, torch.Tensor):
        return
    if given is not None and given.ndim == 4:
        yield from _list_dense_masks(recorder, call, given)
        return
    if given is not None and (given.ndim != 2 or given.shape[0] != batch or given.shape[1] > keys):
        return
    # a mask shorter than a static cache: the slots after it are empty
    used = keys if given is None else given.shape[1]
    padding = None if given is None or given.bool().all() else given.bool()
    is_causal = call.options.get("is_causal")
    is_causal = getattr(call.module, "is_causal", True) if is_causal is None else is_causal
    window = call.options.get("sliding_window")
    reaches = [None] if not isinstance(window, int) else [window - 1, window, window // 2, None]
    in_use = (torch.arange(keys, device=call.q.device) < used)[None, None, None]
    placement = recorder.place_queries(queries, call.k, None if used == keys else in_use)
    for segments in dict.fromkeys((_number_documents(call), None)):
        for reach in reaches:
            for causal in (bool(is_causal), not is_causal):
                mask = Mask(causal=causal, keys=padding, reach=reach, segments=segments)
                placed = _place_at_end(placement, queries, used, is_causal=causal)
                if placed is None:
                    continue
                interpretation = Interpretation(
                    mask, used, placed, real=_find_real(padding, placed, queries)
                )
                yield interpretation
                if padding is not None and reach is not None and _has_gaps(padding):
                    yield replace(interpretation, mask=_count_window_without_padding(mask, queries))


def _list_dense_masks(
    recorder: Recorder, call: InterfaceCall, given: Tensor
) -> Iterator[Interpretation]:
    """Readings of a mask with four axes, with and without a causal mask on top."""
    queries, keys = call.q.shape[2], call.k.shape[2]
    if given.shape[-1] < keys and given.shape[-1] != 1:
        return
    dense, visible = expand_mask(given[..., :keys], keys)
    visible = visible.expand(*visible.shape[:2], queries, keys)
    placement = recorder.place_queries(queries, call.k, visible)
    mask = build_mask(dense[..., : placement.keys], placement)
    real = _find_real(mask.keys, placement, queries)
    yield Interpretation(mask, placement.keys, placement, real=real)
    if placement.known_positions == "queries_and_keys":
        yield Interpretation(replace(mask, causal=True), placement.keys, placement, real=real)


def _place_at_end(
    placement: Placement, queries: int, used: int, *, is_causal: bool
) -> Placement | None:
    """The placement for a mask whose last query is at the last key in use.

    A causal mask, which the output confirms, shows the positions of two queries or more, where
    nothing else does. None if the placement contradicts the mask.
    """
    at_end = Placement("queries_and_keys", used, query_offset=used - queries)
    if placement.known_positions == "queries_and_keys":
        is_same = (placement.keys, placement.query_offset) == (used, used - queries)
        # the function attends to slots that the cache has not filled: their positions mean nothing
        note = f"it attends to {used} keys, of which {placement.keys} are in use"
        return placement if is_same else Placement("none", used, note=note)
    if placement.known_positions == "none" and is_causal and 1 < queries <= used:
        return at_end
    return replace(placement, keys=used) if not is_causal or queries <= used else None


def _find_real(padding: Tensor | None, placement: Placement, queries: int) -> Tensor | None:
    """True for queries that are not padding (B, Q); None if that is not known."""
    if padding is None or placement.known_positions != "queries_and_keys":
        return None
    start = placement.query_offset or 0
    return padding[:, start : start + queries]


def _has_gaps(real: Bool[Tensor, "B K"]) -> bool:
    """Whether padding is between tokens, as in generation after padding on the right."""
    starts = real & ~functional.pad(real, (1, -1), value=False)
    return bool((starts.sum(dim=1) > 1).any())


def _count_window_without_padding(mask: Mask, queries: int) -> Mask:
    """A mask whose window counts tokens only: flash attention removes padding first."""
    assert mask.keys is not None and mask.reach is not None
    numbers = mask.keys.long().cumsum(dim=1)
    distance = numbers[:, None, :] - numbers[:, -queries:, None]
    return replace(mask, reach=None, pairs=(distance.abs() <= mask.reach).unsqueeze(1))


def _number_documents(call: InterfaceCall) -> Tensor | None:
    """Document number of each position (B, K) of packed sequences; None if they are not packed."""
    batch, keys = call.k.shape[0], call.k.shape[2]
    if call.q.shape[2] != keys:
        return None
    ends = call.options.get("cu_seq_lens_k", call.options.get("cu_seqlens_k"))
    if isinstance(ends, torch.Tensor):
        # the ends count positions of all rows, one after the other
        positions = torch.arange(batch * keys, device=call.q.device)
        numbers = torch.bucketize(positions, ends[1:].to(positions), right=True)
        return numbers.reshape(batch, keys)
    position_ids = call.options.get("position_ids")
    if isinstance(position_ids, torch.Tensor) and position_ids.shape[-1] == keys and batch == 1:
        starts = position_ids.reshape(-1, keys)[0] == 0
        return starts.cumsum(0).unsqueeze(0) if int(starts.sum()) > 1 else None
    return None


def _append_key(k: Float[Tensor, "B G K D"]) -> Float[Tensor, "B G K1 D"]:
    """Keys, and one of zeros."""
    return functional.pad(k, (0, 0, 0, 1))


def _append_sink(mask: Mask, q: Tensor, k: Tensor, sinks: Tensor) -> Mask:
    """The mask of one more key: it is of zeros, so that its score is the bias of the sink."""
    queries, keys = q.shape[2], k.shape[2]
    # an extra key has no position: rules of positions become pairs
    visible = replace(mask, keys=None, bias=None).to_keep_mask(queries, keys, q.device)
    key_bias = functional.pad(q.new_zeros(1, q.shape[1], keys, dtype=torch.float32), (0, 1))
    key_bias[..., -1] = sinks.float().reshape(1, -1)
    return Mask(
        keys=None if mask.keys is None else functional.pad(mask.keys, (0, 1), value=True),
        pairs=None if visible is None else functional.pad(visible, (0, 1), value=True),
        bias=None
        if mask.bias is None
        else functional.pad(mask.bias.expand(-1, -1, queries, -1), (0, 1)),
        key_bias=key_bias,
    )


def _compare_output(
    call: InterfaceCall, interpretation: Interpretation, candidate: AttentionCall
) -> tuple[float, float]:
    """Largest and mean square difference between weights times values and the function's output.

    Blocks of up to MAX_CHECKED_ROWS rows are compared, the first and the last rows among them:
    causal masks show at the first, windows at the last.
    """
    keys = interpretation.keys
    everything = slice(0, candidate.batch), slice(0, candidate.heads)
    groups = call.q.shape[1] // call.v.shape[1]
    values = call.v[:, :, :keys].float().repeat_interleave(groups, dim=1)
    largest, total, compared = 0.0, 0.0, 0
    for rows in _select_rows(call.q.shape[2]):
        weights = candidate.compute_maps(RowBlock(*everything, rows)).weights
        # a query that sees nothing has no defined output: functions return zeros, means or NaN
        is_defined = weights.sum(dim=-1) > 0.5
        if interpretation.real is not None:
            is_defined = is_defined & interpretation.real[:, None, rows]
        expected = weights[..., :keys].float() @ values
        difference = (expected - call.output[:, :, rows].float())[is_defined]
        if difference.numel():
            largest = max(largest, float(difference.abs().max().nan_to_num(float("inf"))))
            total += float(difference.square().sum())
            compared += difference.numel()
    return largest, total / max(1, compared)


def _select_rows(queries: int) -> list[slice]:
    """Blocks of rows to compare: all of a short input, and some of a long one."""
    count = MAX_CHECKED_ROWS // CHECKED_BLOCK
    starts = range(0, queries, CHECKED_BLOCK)
    if queries > MAX_CHECKED_ROWS:
        last = queries - CHECKED_BLOCK
        starts = sorted({round(last * index / (count - 1)) for index in range(count)})
    return [slice(start, min(start + CHECKED_BLOCK, queries)) for start in starts]
