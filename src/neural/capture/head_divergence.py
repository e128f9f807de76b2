"""Distance between the attention of every two heads of a model, in any layers.

The distance is the squared Hellinger distance 1 − Σⱼ √(pⱼ qⱼ) of the weights p and q that two heads
give to the keys j, averaged over rows (queries). It is 0 if the heads are equal and 1 if they share
no key. Unlike the Jensen–Shannon divergence it needs only a matrix product of square roots, so all
pairs of heads cost little more than the weights themselves. findings/layer_divergence.py uses the
matrix to compare layers, independently of the order of their heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neural.capture.attention_call import AttentionCall, RowBlock, full_precision
from neural.capture.compiled_statistics import compute_affinity
from neural.nn.kernel_dispatch import kernels_available
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Float

MAX_DIVERGENCE_HEADS = 256
"""With more heads, the matrix of all pairs is large and hard to read: it is not computed."""
ROWS_PER_BLOCK = 64
"""Rows (queries) whose weights are in memory together, for all heads of the model."""


def compute_head_divergence(
    calls: Sequence[AttentionCall | None],
) -> Float[np.ndarray, "N N"] | None:
    """Distances between all N heads of the model; `calls` has one call per layer.

    Heads are in the order of the layers. None if the layers are not comparable: different lengths,
    more than MAX_DIVERGENCE_HEADS heads, or a call that is None because its values are not finite.
    The mean is over valid rows that see at least two keys: with one key, all heads are equal.
    """
    finite_calls = [call for call in calls if call is not None]
    sizes = {(call.batch, call.queries, call.keys, call.extra_keys) for call in finite_calls}
    heads = sum(call.heads for call in finite_calls)
    if len(finite_calls) < len(calls) or len(sizes) != 1 or heads > MAX_DIVERGENCE_HEADS:
        return None
    is_native = kernels_available() and all(
        type(call) is AttentionCall and call.q.device.type == "cpu" for call in finite_calls
    )
    sum_affinities = compute_affinity if is_native else _compute_affinity_in_torch
    with full_precision(finite_calls[0].q.device):
        affinity, row_count = sum_affinities(finite_calls)
    if not row_count:
        return None
    return (1 - affinity / row_count).clamp(0, 1).float().numpy()


def _compute_affinity_in_torch(calls: Sequence[AttentionCall]) -> tuple[torch.Tensor, int]:
    """`compute_affinity` of compiled_statistics.py for all calls, also on other devices."""
    first, heads = calls[0], sum(call.heads for call in calls)
    affinity, row_count = torch.zeros(heads, heads, dtype=torch.float64), 0
    valid = first.valid_queries()
    for example in range(first.batch):
        for start in range(0, first.queries, ROWS_PER_BLOCK):
            rows = slice(start, min(start + ROWS_PER_BLOCK, first.queries))
            examples = slice(example, example + 1)
            maps = [
                call.compute_maps(RowBlock(examples, slice(0, call.heads), rows)) for call in calls
            ]
            key_counts = torch.stack(
                [layer_maps.visible_count[0].amin(dim=0) for layer_maps in maps]
            )
            is_counted = key_counts.amin(dim=0) > 1
            if valid is not None:
                is_counted = is_counted & valid[example, rows]
            weights = torch.cat([layer_maps.weights[0] for layer_maps in maps])[:, is_counted]
            roots = weights.clamp(min=0).sqrt().transpose(0, 1).float()  # (rows, heads, K)
            affinity += torch.bmm(roots, roots.transpose(1, 2)).sum(dim=0).double().cpu()
            row_count += int(is_counted.sum())
    return affinity, row_count
