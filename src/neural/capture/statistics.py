"""Attention measures in one pass over the rows: exact, in 32 bits, O(n) memory.

    row_statistics(q, k, Mask(causal=True), measures=("entropy", "span"))     a value per row
    head_statistics(q, k, Mask(causal=True), measures=("entropy", "span"))    a value per head
    compare_layers(q1, k1, q2, k2, Mask(causal=True))                         two layers, per head

A measure is a property of attention as a number (measures/). A row is the distribution of one query
over the keys; it counts unless it is padding or the measure is undefined for it. The single pass
needs attention that is a softmax of scaled dot products. For other mechanisms
(`DenseAttentionCall`), the measures' reference definitions are applied to blocks of weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from types import ModuleType
from typing import TYPE_CHECKING, Any

from neural.capture.attention_call import AttentionCall, full_precision
from neural.capture.dense_weights import DenseAttentionCall
from neural.capture.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure
from neural.capture.measures import registry
from neural.nn.kernel_dispatch import kernels_available, use_kernel
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

MAX_PAIR_RESULT_BYTES = 64 << 20
"""Limit of what `measure_pairs` computes at once; above it, pairs are compared one after another."""


def _load_kernel() -> ModuleType:
    """The compiled implementation, imported at first use."""
    from neural.capture import compiled_statistics

    return compiled_statistics


def row_statistics(
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B G K D"],
    mask: Mask | None = None,
    *,
    measures: Iterable[str] | None = None,
    **call_fields: Any,
) -> dict[str, Tensor]:
    """Value of each measure for every row: (B, H, Q), or (B, Q) for measures of a whole layer.

    `measures`: their names; if None, all measures of one layer that apply. `call_fields`: other
    fields of `AttentionCall` (scale, tokens, real, query_offset, include_sink, extra_keys,
    known_positions).
    """
    call = AttentionCall(q, k, mask or Mask(), **call_fields)
    return measure_rows(_layer_measures(call) if measures is None else measures, call)


def head_statistics(
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B G K D"],
    mask: Mask | None = None,
    *,
    measures: Iterable[str] | None = None,
    **call_fields: Any,
) -> dict[str, Tensor]:
    """`row_statistics` averaged over the rows that count: (H,), or () for measures of a layer.

    A few measures take the maximum instead (`Measure.aggregate_rows`).
    """
    return aggregate_rows(row_statistics(q, k, mask, measures=measures, **call_fields))


def compare_layers(
    q1: Float[Tensor, "B H Q D"],
    k1: Float[Tensor, "B G K D"],
    q2: Float[Tensor, "B H Q D"],
    k2: Float[Tensor, "B G K D"],
    mask: Mask | None = None,
    *,
    measures: Iterable[str] | None = None,
    **call_fields: Any,
) -> dict[str, Float[Tensor, " H"]]:
    """Compare the attention of two layers, head by head.

    To compare two heads of a layer, pass them as layers of one head:
    `compare_layers(q[:, :1], k[:, :1], q[:, 1:2], k[:, 1:2])`.
    """
    if q1.shape != q2.shape or k1.shape != k2.shape:
        raise ValueError(
            f"both layers must have the same shapes, got {tuple(q1.shape)} and {tuple(q2.shape)}"
        )
    mask = mask or Mask()  # the compiled pass requires the same object for both
    calls = [AttentionCall(q, k, mask, **call_fields) for q, k in ((q1, k1), (q2, k2))]
    names = [name for name in registry.names() if issubclass(registry.get(name), PairMeasure)]
    return aggregate_rows(measure_rows(names if measures is None else measures, *calls))


def aggregate_rows(rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Value of every measure from its values per row: their mean or, for a few, their maximum."""
    # means of equal shapes together: with short rows, the calls of torch take most of the time
    by_shape: dict[torch.Size, list[str]] = {}
    for name, values in rows.items():
        if registry.get(name).aggregate_rows is Measure.aggregate_rows:
            by_shape.setdefault(values.shape, []).append(name)
    means: dict[str, Tensor] = {}
    for names in by_shape.values():
        stacked = torch.stack([rows[name] for name in names])
        means |= zip(names, stacked.nanmean(dim=(1, -1)), strict=True)
    return {
        name: means[name] if name in means else registry.get(name)().aggregate_rows(values)
        for name, values in rows.items()
    }


def measure_rows(names: Iterable[str], *calls: AttentionCall) -> dict[str, Tensor]:
    """Value of each measure for every row of one call, or of two calls that are compared.

    NaN if a row does not count.
    """
    measures = {name: registry.get(name)() for name in names}
    for name, measure in measures.items():
        is_row_measure = isinstance(measure, HeadMeasure | LayerMeasure | PairMeasure)
        if measure.num_layers != len(calls) or not is_row_measure:
            plural = "s" * (len(calls) > 1)
            raise ValueError(f"`{name}` is not a measure of the rows of {len(calls)} layer{plural}")
        if "induction" in measure.required_statistics and calls[0].tokens is None:
            raise ValueError(f"`{name}` needs the token ids: pass tokens=(B, K)")
    rows: dict[str, Tensor] = {}
    with full_precision(calls[0].q.device):
        # the two groups apart: one measure without compiled loops would make all of them slow
        for is_compiled in (True, False):
            group = {
                name: measure
                for name, measure in measures.items()
                if bool(measure.required_statistics) == is_compiled
            }
            rows |= _measure_by_definition(group, *calls) if group else {}
        _mark_padding(rows, *calls)
    return {name: rows[name] for name in measures}


def measure_pairs(
    names: Iterable[str], calls: Sequence[AttentionCall]
) -> dict[tuple[int, int], dict[str, Tensor]]:
    """Value of each measure of two layers for every row, for every two of several calls.

    The result of `measure_rows` by the indices (i, j) of the calls, i < j. The calls have the same
    shapes. Native code scores every call once instead of once per pair.
    """
    names, pairs = list(names), list(combinations(range(len(calls)), 2))
    measures = {name: registry.get(name)() for name in names}
    result_bytes = len(pairs) * len(names) * calls[0].q[..., 0].numel() * 4
    if (
        result_bytes > MAX_PAIR_RESULT_BYTES
        or not kernels_available()
        or not all(isinstance(measure, PairMeasure) for measure in measures.values())
        or not all(type(call) is AttentionCall for call in calls)
        or not _load_kernel().supports(measures, *calls)
    ):
        return {(i, j): measure_rows(names, calls[i], calls[j]) for i, j in pairs}
    with full_precision(calls[0].q.device):
        rows = {
            pair: {name: measure.from_statistics(values) for name, measure in measures.items()}
            for pair, values in _load_kernel().compare_calls(calls).items()
        }
        for (i, j), values in rows.items():
            _mark_padding(values, calls[i], calls[j])
    return rows


def _mark_padding(rows: Mapping[str, Tensor], *calls: AttentionCall) -> None:
    """Set the values of padded queries to NaN, in place."""
    for valid in filter(torch.is_tensor, (call.valid_queries() for call in calls)):
        for values in rows.values():
            is_padding = ~(valid if values.ndim == 2 else valid.unsqueeze(1))
            values.masked_fill_(is_padding, float("nan"))


@use_kernel(_load_kernel)
def _measure_by_definition(
    measures: Mapping[str, Measure], *calls: AttentionCall
) -> dict[str, Tensor]:
    """Apply the reference definitions to blocks of rows.

    `use_kernel` calls the compiled loops instead if they support these measures and calls.
    """
    first, rows = calls[0], {}
    for is_layer_measure in (False, True):
        group = {
            name: measure
            for name, measure in measures.items()
            if isinstance(measure, LayerMeasure) == is_layer_measure
        }
        shape = (first.batch, first.queries) if is_layer_measure else first.q.shape[:3]
        rows |= {name: torch.full(shape, float("nan"), device=first.q.device) for name in group}
        heads = first.heads if is_layer_measure else 1
        for block in first.iter_blocks(heads=heads) if group else ():
            maps = [call.compute_maps(block) for call in calls]
            sees_keys = torch.stack([call_maps.visible_mask.any(dim=-1) for call_maps in maps]).all(
                dim=0
            )
            # a measure of the whole layer has no axis of heads: block[::2] is (batch, rows)
            index, sees_keys = (
                (block[::2], sees_keys.all(dim=1)) if is_layer_measure else (block, sees_keys)
            )
            for name, measure in group.items():
                rows[name][index] = measure.reference(*maps).masked_fill(~sees_keys, float("nan"))
    return rows


def is_applicable(measure: type[Measure], call: AttentionCall) -> bool:
    """Whether a call has what a measure needs: tokens, scores, extra keys, positions, signs."""
    is_missing = {
        "induction": call.tokens is None,
        "logit": isinstance(call, DenseAttentionCall) or not call.has_logits,
        "extra": not call.extra_keys,
    }
    # What is known about positions, in ascending order: nothing, the keys' positions, or the
    # positions of queries and keys in one shared sequence.
    levels = ("none", "keys", "queries_and_keys")
    has_positions = levels.index(measure.needs_positions) <= levels.index(call.known_positions)
    has_signs = call.is_signed or not measure.signed_only
    return (has_positions and has_signs) and not any(
        is_missing.get(statistic, False) for statistic in measure.required_statistics
    )


def _layer_measures(call: AttentionCall) -> list[str]:
    """Names of all measures of one layer that apply to a call."""
    measures = {name: registry.get(name) for name in registry.names()}
    return [
        name
        for name, measure in measures.items()
        if issubclass(measure, HeadMeasure | LayerMeasure) and is_applicable(measure, call)
    ]
