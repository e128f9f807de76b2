"""Roles of the heads of one capture of attention, from all of its examples.

A capture (capture/capture_result.py) is the attention of one forward pass; it counts as one
snapshot, at step 0. findings/head_roles.py defines the roles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neural.capture.attention_call import AttentionCall
from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.map_encoding import to_shares
from neural.capture.snapshot_writer import MAX_MAP_POSITIONS
from neural.findings.head_roles import (
    MIN_ROLE_POSITIONS,
    TOO_SHORT,
    RoleScores,
    assign_head_roles,
    average_length,
    count_repetitions,
    score_layer,
    score_measures,
    stack_layer_scores,
    stack_rows,
)


def find_capture_roles(capture: Capture) -> np.ndarray:
    """Name of the role of every head, [layer, head]; "mixed" without a role, "" without a head.

    Empty if nothing was captured.
    """
    roles = score_capture(capture)
    if not roles:
        return np.full((len(capture), 0), "", dtype=object)
    return assign_head_roles(roles)


def score_capture(capture: Capture) -> dict[str, RoleScores]:
    """Scores of all roles that something is known about."""
    measures = {
        name: (np.array([0]), values[None])
        for name, values in capture.measure_arrays().items()
        if values.ndim == 2
    }
    tokens = next((call.attention.tokens for call in capture if call.attention is not None), None)
    roles = score_measures(measures, count_repetitions(None if tokens is None else tokens.tolist()))
    layers = []
    for layer, call in enumerate(capture):
        batch = 0 if call.attention is None else call.attention.batch
        keys = [capture.axis_labels(layer, example).keys for example in range(batch)]
        layers.append(_score_call(call, keys))
    from_maps = stack_layer_scores([0], [layers])
    return roles | {name: role for name, role in from_maps.items() if name not in roles}


def _score_call(
    call: CapturedCall, key_labels: Sequence[list[str] | None]
) -> dict[str, np.ndarray]:
    """Role → scores of the heads of one call, as far as they need maps.

    `key_labels`: texts of the keys of each example.
    """
    attention = call.attention
    if attention is None:
        return {}
    is_real = np.ones((attention.batch, attention.queries), bool)
    if (valid := attention.valid_queries()) is not None:
        is_real &= valid.cpu().numpy()
    if not _is_aligned(attention):
        is_short = min(average_length(is_real), attention.positions) < MIN_ROLE_POSITIONS
        return {TOO_SHORT: np.full(call.heads, float(is_short))}
    maps = to_shares(call.maps(positions=MAX_MAP_POSITIONS))
    return dict(score_layer(stack_rows(maps, key_labels, is_real[:, : maps.shape[2]])))


def _is_aligned(attention: AttentionCall) -> bool:
    """Whether the queries of the maps are the last positions of their keys, as roles assume."""
    if attention.known_positions != "queries_and_keys":
        return False
    is_cut = attention.positions > MAX_MAP_POSITIONS
    return attention.first_query_position == attention.positions - attention.queries and not (
        is_cut and attention.queries < attention.positions
    )
