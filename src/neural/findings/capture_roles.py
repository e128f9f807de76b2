"""Roles of the heads of one capture of attention, or of several batches, from all examples.

    find_capture_roles(capture)
    name_roles([RoleParts.collect(capture) for capture in …])       one capture at a time

A capture (capture/capture_result.py) is the attention of one forward pass; it counts as one
snapshot, at step 0. findings/head_roles.py defines the roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from neural.capture.attention_call import AttentionCall
from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.map_encoding import to_shares
from neural.capture.snapshot_writer import MAX_MAP_POSITIONS
from neural.findings.head_roles import (
    ROLE_MEASURES,
    RoleScores,
    RowSums,
    assign_head_roles,
    average_length,
    count_repetitions,
    score_measures,
    stack_layer_scores,
    stack_rows,
    sum_rows,
)


def find_capture_roles(capture: Capture) -> np.ndarray:
    """Name of the role of every head, [layer, head]; "mixed" without a role, "" without a head.

    Empty if nothing was captured.
    """
    return name_roles([RoleParts.collect(capture)])


def name_roles(parts: Sequence[RoleParts]) -> np.ndarray:
    """The same on the examples of several captures; ValueError as of `score_parts`."""
    roles = score_parts(parts)
    if not roles:
        return np.full((len(parts[0].layers) if parts else 0, 0), "", dtype=object)
    return assign_head_roles(roles)


def score_capture(capture: Capture) -> dict[str, RoleScores]:
    """Scores of all roles that something is known about."""
    return score_parts([RoleParts.collect(capture)])


@dataclass(frozen=True)
class RoleParts:
    """What roles are found from, of one capture: a few numbers for each head.

    A capture has the queries and keys of its examples. Of many examples that is too much, so they
    are captured batch by batch, and only these parts are kept.
    """

    measures: dict[str, np.ndarray]
    """Measure of heads → means over rows, [layer, head]."""
    counts: dict[str, np.ndarray]
    """Measure → number of these rows."""
    repetitions: int | None
    layers: list[RowSums | None]
    """None for a call that cannot be measured."""

    @classmethod
    def collect(cls, capture: Capture) -> RoleParts:
        """The parts of a capture."""
        measures = {
            name: values
            for name, values in capture.measure_arrays().items()
            if values.ndim == 2 and name in ROLE_MEASURES
        }
        counts = {name: np.zeros(values.shape) for name, values in measures.items()}
        for layer, call in enumerate(capture):
            for name, numbers in call.count_rows().items():
                if name in counts:
                    counts[name][layer, : len(numbers)] = numbers
        calls = [call.attention for call in capture if call.attention is not None]
        tokens = calls[0].tokens if calls else None
        layers = []
        for layer, call in enumerate(capture):
            batch = 0 if call.attention is None else call.attention.batch
            keys = [capture.axis_labels(layer, example).keys for example in range(batch)]
            layers.append(_sum_call(call, keys))
        repetitions = count_repetitions(None if tokens is None else tokens.tolist())
        return cls(measures, counts, repetitions, layers)


def score_parts(parts: Sequence[RoleParts]) -> dict[str, RoleScores]:
    """Scores on the examples of several captures, as if they were one batch.

    ValueError if the captures do not have the same layers and heads.
    """
    if not parts:
        return {}
    names = [name for name in parts[0].measures if all(name in part.measures for part in parts)]
    measures = {name: (np.array([0]), _average(parts, name)[None]) for name in names}
    counted = [part.repetitions for part in parts if part.repetitions is not None]
    roles = score_measures(measures, sum(counted) if len(counted) == len(parts) else None)
    layers = [_score_layer(sums) for sums in zip(*(part.layers for part in parts), strict=True)]
    from_maps = stack_layer_scores([0], [layers])
    return roles | {name: role for name, role in from_maps.items() if name not in roles}


def _score_layer(parts: Sequence[RowSums | None]) -> dict[str, np.ndarray]:
    known = [sums for sums in parts if sums is not None]
    return dict(reduce(add, known).score()) if len(known) == len(parts) else {}


def _average(parts: Sequence[RoleParts], name: str) -> np.ndarray:
    """A measure over the rows of all captures, [layer, head]; NaN where no row counts."""
    counts = np.stack([part.counts[name] for part in parts])
    means = np.stack([part.measures[name] for part in parts])
    shares = counts / np.maximum(counts.sum(axis=0), 1)
    total = np.where(counts > 0, means * shares, 0).sum(axis=0)
    return np.where((counts > 0).any(axis=0), total, np.nan).astype(means.dtype)


def _sum_call(call: CapturedCall, key_labels: Sequence[list[str] | None]) -> RowSums | None:
    """Sums over the rows of one call, as far as they need maps.

    `key_labels`: texts of the keys of each example.
    """
    attention = call.attention
    if attention is None:
        return None
    is_real = np.ones((attention.batch, attention.queries), bool)
    if (valid := attention.valid_queries()) is not None:
        is_real &= valid.cpu().numpy()
    if not _is_aligned(attention):
        length, count = min(average_length(is_real), attention.positions), int(is_real.sum())
        return RowSums(call.heads, count, length * count, None)
    maps = to_shares(call.maps(positions=MAX_MAP_POSITIONS))
    return sum_rows(stack_rows(maps, key_labels, is_real[:, : maps.shape[2]]))


def _is_aligned(attention: AttentionCall) -> bool:
    """Whether the queries of the maps are the last positions of their keys, as roles assume."""
    if attention.known_positions != "queries_and_keys":
        return False
    is_cut = attention.positions > MAX_MAP_POSITIONS
    return attention.first_query_position == attention.positions - attention.queries and not (
        is_cut and attention.queries < attention.positions
    )
