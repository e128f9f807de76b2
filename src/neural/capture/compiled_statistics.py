"""Row statistics of attention calls by the native kernels of attention_statistics.cpp.

This is the kernel of statistics.py (nn/kernel_dispatch.py): if `supports` returns True, `run` is
called instead of the torch implementation. A row is the distribution of one query over the keys.
The kernels compute statistics of rows; `Measure.from_statistics` makes measures of them. One native
call measures all examples and heads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from neural.capture.attention_call import AttentionCall
from neural.capture.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure
from neural.capture.measures.centred_cosine_between import MIN_DISTANCE_FROM_UNIFORM
from neural.capture.measures.span90 import MASS_SHARE
from neural.native.library import NativeFunction
from neural.nn.lazy_torch import torch
from neural.nn.mask import as_bool

ROW_STATISTICS = (
    "entropy",  # in nats
    "visible",  # number of visible keys
    "logit",  # largest score
    "largest",  # largest weight
    "first",  # weight of the first key of the sequence
    "previous",  # weight of the key before the query's own
    "diagonal",  # weight of the query's own key
    "induction",  # weight of the key of induction (see `_find_induction_targets`)
    "distance",  # mean distance between query and key
    "position",  # mean position of the keys
    "spread",  # standard deviation of the position
    "within",  # smallest distance that contains the share MASS_SHARE of the weight
    "extra",  # weight of the keys that are not positions
    "from_first",  # distance of the first key
    "sees_first",  # 1 if the first key is visible, else 0
)
"""Statistics of a row of one head, in the order of `RowStatistic` in attention_statistics.cpp."""
LAYER_STATISTICS = ("diversity", "variance")
"""Jensen–Shannon divergence of all heads (nats), and variance of a weight over the heads."""
PAIR_STATISTICS = ("js", "kl", "cosine", "centred")
"""Jensen–Shannon divergence (bits), Kullback–Leibler divergence (nats), cosine of two rows, and
cosine after subtracting the uniform row."""
MAX_REACH = 2**40
"""Windows are limited to this many keys, so that sums with positions stay in 64 bits."""

_measure_head_rows = NativeFunction("measure_head_rows", "pp i f i p")
_measure_layer_rows = NativeFunction("measure_layer_rows", "pp i p")
_compare_call_rows = NativeFunction("compare_call_rows", "p i f p i p")
_sum_head_affinities = NativeFunction("sum_head_affinities", "p i ppp i p")


class NativeCall(ctypes.Structure):
    """Arguments of one attention call; `Call` in attention_statistics.cpp has the same fields."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("q", "k", "key_bias", "bias", "pairs", "segments")),
        *((name, ctypes.c_void_p) for name in ("first_keys", "targets")),
        ("q_strides", ctypes.c_int64 * 4),
        ("k_strides", ctypes.c_int64 * 4),
        ("key_bias_strides", ctypes.c_int64 * 3),
        ("bias_strides", ctypes.c_int64 * 4),
        ("pairs_strides", ctypes.c_int64 * 4),
        ("segments_strides", ctypes.c_int64 * 2),
        *((name, ctypes.c_int64) for name in ("batch", "heads", "key_heads")),
        *((name, ctypes.c_int64) for name in ("queries", "keys", "width")),
        *((name, ctypes.c_int64) for name in ("positions", "query_offset")),
        *((name, ctypes.c_int64) for name in ("keys_before", "keys_after")),
        *((name, ctypes.c_int64) for name in ("include_sink", "shares_positions")),
        ("scale", ctypes.c_double),
    )


class NativeCalls:
    """Attention calls as an array of `NativeCall`. Owns the tensors that the array points to."""

    def __init__(self, *calls: AttentionCall, with_targets: bool = False) -> None:
        self._tensors: list[torch.Tensor] = []
        self.array = (NativeCall * len(calls))(*map(self._convert, calls))
        if with_targets:
            for native_call, call in zip(self.array, calls, strict=True):
                native_call.targets = self._address(_find_induction_targets(call).contiguous())

    def _convert(self, call: AttentionCall) -> NativeCall:
        return NativeCall(
            **self._mask_fields(call),
            **self._tensor_fields("q", call.q.detach().float()),
            **self._tensor_fields("k", call.k.detach().float()),
            batch=call.batch,
            heads=call.heads,
            key_heads=call.k.shape[1],
            queries=call.queries,
            keys=call.keys,
            width=call.q.shape[3],
            positions=call.positions,
            query_offset=call.first_query_position,
            keys_before=min(call.keys_before, MAX_REACH),
            keys_after=min(call.keys_after, MAX_REACH),
            include_sink=call.include_sink,
            shares_positions=call.known_positions == "queries_and_keys",
            scale=call.score_scale,
        )

    def _mask_fields(self, call: AttentionCall) -> dict[str, Any]:
        mask, shape = call.mask, (call.batch, call.heads, call.queries, call.keys)
        fields = {"first_keys": self._address(call.first_keys.long().contiguous())}
        key_bias = call.key_bias(call.full_block())
        if key_bias is not None:
            fields |= self._tensor_fields("key_bias", key_bias.detach().float().squeeze(2))
        if mask.bias is not None:
            fields |= self._tensor_fields("bias", mask.bias.detach().float().expand(shape))
        if mask.pairs is not None:
            fields |= self._tensor_fields("pairs", as_bool(mask.pairs).expand(shape))
        if mask.segments is not None:
            segments = mask.segments.expand(call.batch, call.keys)
            if segments.is_floating_point():  # any numbers may name segments
                segments = segments.unique(return_inverse=True)[1]
            fields |= self._tensor_fields("segments", segments.long())
        return fields

    def _tensor_fields(self, name: str, tensor: torch.Tensor) -> dict[str, Any]:
        return {name: self._address(tensor), f"{name}_strides": tensor.stride()}

    def _address(self, tensor: torch.Tensor) -> int:
        self._tensors.append(tensor)
        return tensor.data_ptr()


def supports(measures: Mapping[str, Measure], *calls: AttentionCall) -> bool:
    """Whether the kernels can compute these measures of one call, or of two calls.

    They can if the tensors are on the CPU, all measures are computed from statistics of the
    kernels, and two calls have the same mask and positions.
    """
    return (
        all(measure.required_statistics for measure in measures.values())
        and calls[0].q.device.type == "cpu"
        and have_same_mask(calls)
    )


def have_same_mask(calls: Sequence[AttentionCall]) -> bool:
    """Whether calls have the same mask object and positions, so that they can be compared."""
    first = calls[0]
    return all(
        call.mask is first.mask and _position_layout(call) == _position_layout(first)
        for call in calls
    )


def run(measures: Mapping[str, Measure], *calls: AttentionCall) -> dict[str, torch.Tensor]:
    """Values of each measure for every row, by name; one pass for each kind of measure.

    A pass over one head at a time serves head measures, one over all heads layer measures, and one
    over two calls pair measures.
    """
    rows: dict[str, torch.Tensor] = {}
    for kind, compute_statistics in (
        (HeadMeasure, _head_rows),
        (LayerMeasure, _layer_rows),
        (PairMeasure, _pair_rows),
    ):
        group = {name: measure for name, measure in measures.items() if isinstance(measure, kind)}
        if group:
            required = {name for measure in group.values() for name in measure.required_statistics}
            statistics = compute_statistics(required, *calls)
            rows |= {name: measure.from_statistics(statistics) for name, measure in group.items()}
    return rows


def _head_rows(required: set[str], call: AttentionCall) -> dict[str, torch.Tensor]:
    """ROW_STATISTICS by name, (B, H, Q) each; costly ones only if they are `required`.

    The others are NaN.
    """
    out = torch.full((len(ROW_STATISTICS), *call.q.shape[:3]), float("nan"))
    calls = NativeCalls(call, with_targets=True)
    mass_share = MASS_SHARE if "within" in required else 0.0
    _run(_measure_head_rows, calls, out.data_ptr(), "spread" in required, mass_share)
    return dict(zip(ROW_STATISTICS, out, strict=True))


def _layer_rows(required: set[str], call: AttentionCall) -> dict[str, torch.Tensor]:
    """LAYER_STATISTICS by name, (B, Q) each; `required` is not used."""
    out = torch.full((len(LAYER_STATISTICS), call.batch, call.queries), float("nan"))
    _run(_measure_layer_rows, NativeCalls(call), out.data_ptr())
    return dict(zip(LAYER_STATISTICS, out, strict=True))


def _pair_rows(
    required: set[str], call: AttentionCall, other: AttentionCall
) -> dict[str, torch.Tensor]:
    """PAIR_STATISTICS by name, (B, H, Q) each; `required` is not used."""
    return compare_calls([call, other])[0, 1]


def compare_calls(
    calls: Sequence[AttentionCall],
) -> dict[tuple[int, int], dict[str, torch.Tensor]]:
    """PAIR_STATISTICS of every two of several calls: (i, j) with i < j → name → (B, H, Q).

    All calls have the same shapes, and `have_same_mask` is True of them. Every call is scored once.
    """
    pairs = list(combinations(range(len(calls)), 2))
    out = torch.full((len(pairs), len(PAIR_STATISTICS), *calls[0].q.shape[:3]), float("nan"))
    arguments = (len(calls), MIN_DISTANCE_FROM_UNIFORM, out.data_ptr())
    _run(_compare_call_rows, NativeCalls(*calls), *arguments)
    return {
        pair: dict(zip(PAIR_STATISTICS, rows, strict=True))
        for pair, rows in zip(pairs, out, strict=True)
    }


def compute_affinity(calls: Sequence[AttentionCall]) -> tuple[torch.Tensor, int]:
    """Σⱼ √(pⱼ qⱼ) of every two heads of all calls, summed over rows: (N, N) float64.

    Also the number of rows: those that are valid in the first call and see at least two keys in
    every head. All calls have the same examples, queries and keys. See head_divergence.py.
    """
    heads = sum(call.heads for call in calls)
    affinity, row_count = torch.zeros(heads, heads, dtype=torch.float64), ctypes.c_int64(0)
    valid = calls[0].valid_queries()
    valid = None if valid is None else valid.contiguous()
    valid_address = None if valid is None else valid.data_ptr()
    arguments = (len(calls), valid_address, affinity.data_ptr(), ctypes.byref(row_count))
    _run(_sum_head_affinities, NativeCalls(*calls), *arguments)
    return affinity, row_count.value


def _run(function: NativeFunction, calls: NativeCalls, *arguments: Any) -> None:
    """Call a kernel, whose last two arguments are the number of threads and an error flag."""
    failed = ctypes.c_int64(0)
    function(calls.array, *arguments, torch.get_num_threads(), ctypes.byref(failed))
    if failed.value:
        raise MemoryError("not enough memory for the statistics of attention")


def _position_layout(call: AttentionCall) -> tuple[int | bool, ...]:
    """Everything about positions that two calls must share to be compared."""
    return (
        call.keys,
        call.positions,
        call.first_query_position,
        call.keys_before,
        call.keys_after,
        call.include_sink,
        call.known_positions == "queries_and_keys",
    )


def _find_induction_targets(call: AttentionCall) -> torch.Tensor:
    """For every query, (B, Q), the key after the last earlier key with the same token.

    −1 if there is none, and if it is the query's own position: a head that attends to itself is no
    induction head.
    """
    if call.tokens is None:
        return torch.full((call.batch, call.queries), -1)
    # a stable sort puts equal tokens next to each other in the order of their positions
    order = call.tokens.argsort(dim=-1, stable=True)
    tokens = call.tokens.gather(-1, order)
    is_repeated = tokens[:, 1:] == tokens[:, :-1]
    target = torch.full_like(order, -1)
    target.scatter_(-1, order[:, 1:], torch.where(is_repeated, order[:, :-1] + 1, -1))
    target = torch.where(target == torch.arange(call.positions), -1, target)
    positions = call.query_positions()
    is_inside = (positions >= 0) & (positions < call.positions)
    return torch.where(is_inside, target[:, positions.clamp(0, call.positions - 1)], -1)
