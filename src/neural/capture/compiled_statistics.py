"""Row statistics of attention calls by the compiled loops of kernels.py, head by head.

This is the kernel of statistics.py (nn/kernel_dispatch.py): if `supports` returns True, `run` is
called instead of the torch implementation. A row is the distribution of one query over the keys.
The loops compute statistics of rows; `Measure.from_statistics` makes measures of them. A tile is
ROWS_PER_TILE rows, a panel KEYS_PER_PANEL keys: the loops multiply a tile with a panel at once. A
key head is a head of the keys; several query heads may share one (grouped-query attention).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numba
import numpy as np

from neural.capture import kernels
from neural.capture.attention_call import ROWS_PER_CHUNK, AttentionCall, RowBlock
from neural.capture.kernels import KEYS_PER_PANEL, ROWS_PER_TILE
from neural.capture.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure
from neural.capture.measures.centred_cosine_between import MIN_DISTANCE_FROM_UNIFORM
from neural.capture.measures.span90 import MASS_SHARE
from neural.nn.lazy_torch import torch


def supports(measures: Mapping[str, Measure], *calls: AttentionCall) -> bool:
    """Whether the loops can compute these measures of one call, or of two calls.

    They can if the tensors are on the CPU, all measures are computed from statistics of the loops,
    and two calls have the same mask and positions.
    """
    first = calls[0]
    have_same_mask = all(
        _position_layout(call) == _position_layout(first) and call.mask is first.mask
        for call in calls
    )
    return (
        have_same_mask
        and all(measure.required_statistics for measure in measures.values())
        and first.q.device.type == "cpu"
    )


def run(measures: Mapping[str, Measure], *calls: AttentionCall) -> dict[str, torch.Tensor]:
    """Values of each measure for every row, by name; one pass for each kind of measure.

    A pass over one head at a time serves head measures, one over all heads layer measures, and one
    over two calls pair measures.
    """
    threads = torch.get_num_threads()
    numba.set_num_threads(min(threads, vars(numba.config)["NUMBA_NUM_THREADS"]))
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
    # numba and torch share OpenMP, and numba's first loop sets its own number of threads there
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    return rows


def _head_rows(required: set[str], call: AttentionCall) -> dict[str, torch.Tensor]:
    """ROW_STATISTICS by name, (B, H, Q) each; costly ones only if they are `required`.

    The others are NaN.
    """
    out = torch.full((len(kernels.ROW_STATISTICS), *call.q.shape[:3]), float("nan"))
    positions = np.arange(call.positions, dtype=np.float32)
    targets, first_keys = _find_induction_targets(call).numpy(), call.first_keys.numpy()
    needs_distance = not required.isdisjoint({"distance", "position", "spread"})
    mass_share = MASS_SHARE if "within" in required else 0.0
    pass_options = (needs_distance, "spread" in required, mass_share)
    for block in call.iter_blocks(heads=1, chunk=call.queries):
        (q,), (panels,), (key_bias,) = _pack_inputs(call, block)
        example, head = block.batch.start, block.heads.start
        for rows, (pair_bias,), layout in _iter_chunks(call, block):
            kernels.measure_head_rows(
                q[rows],
                panels,
                key_bias,
                pair_bias,
                first_keys[example, rows],
                layout,
                positions,
                targets[example, rows],
                *pass_options,
                out[:, example, head, rows].numpy(),
            )
    return dict(zip(kernels.ROW_STATISTICS, out, strict=True))


def _layer_rows(required: set[str], call: AttentionCall) -> dict[str, torch.Tensor]:
    """LAYER_STATISTICS by name, (B, Q) each; `required` is not used."""
    out = torch.full((len(kernels.LAYER_STATISTICS), call.batch, call.queries), float("nan"))
    first_keys = call.first_keys.numpy()
    for block in call.iter_blocks(heads=call.heads, chunk=call.queries):
        q, panels, key_bias = _pack_inputs(call, block)
        example = block.batch.start
        for rows, pair_bias, layout in _iter_chunks(call, block):
            kernels.measure_layer_rows(
                q[:, rows],
                panels,
                key_bias,
                pair_bias,
                first_keys[example, rows],
                layout,
                out[:, example, rows].numpy(),
            )
    return dict(zip(kernels.LAYER_STATISTICS, out, strict=True))


def _pair_rows(
    required: set[str], call: AttentionCall, other: AttentionCall
) -> dict[str, torch.Tensor]:
    """PAIR_STATISTICS by name, (B, H, Q) each; `required` is not used."""
    out = torch.full((len(kernels.PAIR_STATISTICS), *call.q.shape[:3]), float("nan"))
    first_keys = call.first_keys.numpy()
    for block in call.iter_blocks(heads=1, chunk=call.queries):
        (q,), (panels,), (key_bias,) = _pack_inputs(call, block)
        (other_q,), (other_panels,), _ = _pack_inputs(other, block)
        example, head = block.batch.start, block.heads.start
        for rows, (pair_bias,), layout in _iter_chunks(call, block):
            kernels.measure_pair_rows(
                q[rows],
                panels,
                key_bias,
                pair_bias,
                first_keys[example, rows],
                layout,
                other_q[rows],
                other_panels,
                MIN_DISTANCE_FROM_UNIFORM,
                out[:, example, head, rows].numpy(),
            )
    return dict(zip(kernels.PAIR_STATISTICS, out, strict=True))


def _pack_inputs(call: AttentionCall, block: RowBlock) -> tuple[Any, Any, Any]:
    """Inputs of the kernels for one example and some heads.

    Returns scaled queries (heads, rows, D), keys in panels (key heads, panels, D, KEYS_PER_PANEL),
    and the bias per key (heads, K), each padded with zeros to full tiles and panels. Copies are
    made with numpy, on this thread alone: torch would use its threads for every copy, and they
    would compete with the loops.
    """
    example, heads_per_key_head = block.batch.start, call.heads // call.k.shape[1]
    q = call.q[example, block.heads].detach().float().numpy()
    first_key_head = block.heads.start // heads_per_key_head
    last_key_head = (block.heads.stop - 1) // heads_per_key_head
    k = call.k[example, first_key_head : last_key_head + 1].detach().float().numpy()
    queries = np.zeros((len(q), _round_up(call.queries, ROWS_PER_TILE), q.shape[2]), np.float32)
    np.multiply(q, np.float32(call.score_scale), out=queries[:, : call.queries])
    padded_keys = _round_up(call.keys, KEYS_PER_PANEL)
    panel_count, width = padded_keys // KEYS_PER_PANEL, k.shape[2]
    panels = np.zeros((len(k), panel_count, width, KEYS_PER_PANEL), np.float32)
    full_panels, remaining_keys = divmod(call.keys, KEYS_PER_PANEL)
    full_keys = k[:, : full_panels * KEYS_PER_PANEL]
    panels[:, :full_panels] = full_keys.reshape(
        len(k), full_panels, KEYS_PER_PANEL, width
    ).swapaxes(2, 3)
    panels[:, full_panels:, :, :remaining_keys] = k[
        :, None, full_panels * KEYS_PER_PANEL :
    ].swapaxes(2, 3)
    key_bias, bias = np.zeros((len(q), padded_keys), np.float32), call.key_bias(block)
    if bias is not None:
        key_bias[:, : call.keys] = bias[0, :, 0].detach().numpy()
    return queries, panels, key_bias


def _position_layout(call: AttentionCall) -> tuple[int, int, int, int, int, bool, bool]:
    """The argument `layout` of kernels.py for the first row, without the number of threads."""
    position_layout = (
        call.keys,
        call.positions,
        call.first_query_position,
        call.keys_before,
        call.keys_after,
    )
    return *position_layout, call.include_sink, call.known_positions == "queries_and_keys"


def _iter_chunks(
    call: AttentionCall, block: RowBlock
) -> Iterator[tuple[slice, Any, tuple[int | bool, ...]]]:
    """Chunks of rows of a block, as (rows, bias per pair, argument `layout` of kernels.py).

    The bias is (heads, rows, K), without rows if there is none. Only such a bias takes much memory:
    without one, a single chunk has all rows.
    """
    mask = call.mask
    has_pair_bias = any(rule is not None for rule in (mask.segments, mask.pairs, mask.bias))
    heads = block.heads.stop - block.heads.start
    no_bias = np.empty((heads, 0, 0), np.float32)
    rows_per_chunk = max(ROWS_PER_TILE, ROWS_PER_CHUNK // heads // ROWS_PER_TILE * ROWS_PER_TILE)
    chunk = rows_per_chunk if has_pair_bias else call.queries
    for _, _, rows in call.iter_blocks(heads=call.heads, chunk=chunk):
        pair_bias = call.pair_bias(block._replace(rows=rows))
        keys, positions, start, *rest = _position_layout(call)
        layout = (keys, positions, start + rows.start, *rest, numba.get_num_threads())
        if pair_bias is None:
            yield rows, no_bias, layout
        else:
            yield rows, pair_bias[0].detach().contiguous().numpy(), layout
        if rows.stop == call.queries:  # `iter_blocks` would continue with the next example
            return


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


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
