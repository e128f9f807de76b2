"""Roles of attention heads, and the norm of their output.

A snapshot is the attention of a fixed probe batch at one training step (capture/tracker.py); maps
are its weights, measures its numbers per head. A role is a score from 0 to 1 for every snapshot,
layer and head, with a threshold. It is compared with the last level of the score, the mean since
its last jump, not with its last value, which noise may lift over the threshold
(analysis/change_points.py). Four roles come from measures, at every snapshot; three come from the
maps of the first probe example, at snapshots that have them. Mass is the sum of weights. The roles:

    uniform          entropy divided by that of a uniform head
    sink             mass on the first key, beyond that of a uniform head
    previous token   mass on the key before the query
    induction        mass on the token after the previous occurrence of the query token
    positional       mass at one distance, the same for all queries; the largest over distances
    local            mass within 3 positions, beyond that of a uniform head
    delimiter        mass on blanks, punctuation and special tokens such as [SEP], beyond that of
                     a uniform head
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neural.analysis.change_points import estimate_last_level, find_onset
from neural.analysis.run_loading import MissingDataError, load_measure
from neural.capture.map_encoding import add_map_location, decode_map
from neural.runs.run import Run

ROLE_MEASURES = {
    "uniform": "relative_entropy",
    "sink": "sink_excess",
    "previous token": "previous_token_mass",
    "induction": "induction_mass",
}
"""Role → name of the attention measure that is its score."""
ROLE_THRESHOLDS = {
    "uniform": 0.95,
    "sink": 0.5,
    "previous token": 0.5,
    "induction": 0.4,
    "positional": 0.5,
    "local": 0.8,
    "delimiter": 0.5,
}
"""A head with several roles gets the one whose score is the largest multiple of its threshold."""
MAX_LOCAL_DISTANCE = 3
"""Positions between query and key that count as local."""


@dataclass(frozen=True, eq=False)
class RoleScores:
    """Scores of one role for all snapshots, layers and heads."""

    name: str
    steps: np.ndarray
    scores: np.ndarray
    """[step, layer, head]; NaN where a layer has fewer heads."""

    @cached_property
    def last_levels(self) -> np.ndarray:
        """The last level of each head's score, [layer, head]."""
        shape = self.scores.shape[1:]
        levels = [_head_last_level(self.scores[:, *index]) for index in np.ndindex(*shape)]
        return np.array(levels, dtype=float).reshape(shape)

    def find_onset_step(self, layer: int, head: int) -> int:
        """The step since which a head has had this role; only for heads that have it at the end."""
        scores = self.scores[:, layer, head]
        finite = np.isfinite(scores)
        return int(self.steps[finite][find_onset(scores[finite], ROLE_THRESHOLDS[self.name]) or 0])


def _head_last_level(scores: np.ndarray) -> float:
    """Last level of one head's scores, [step]; NaN without a finite one."""
    finite = scores[np.isfinite(scores)]
    return estimate_last_level(finite) if len(finite) else math.nan


def find_head_roles(run: Run) -> dict[str, RoleScores]:
    """Scores of all roles that the run has data for; MissingDataError without any."""
    measure_names, roles = set(run.measure_names()), {}
    for name, source in ROLE_MEASURES.items():
        if source in measure_names:
            roles[name] = RoleScores(name, *load_measure(run, source))
    roles |= _roles_from_maps(run)
    if not roles:
        raise MissingDataError(
            f"{run.name} has no measure `relative_entropy` and no maps; see `tracking`"
        )
    return roles


def assign_head_roles(roles: dict[str, RoleScores]) -> np.ndarray:
    """The final role of every head, [layer, head]; "mixed" without a role, "" without a head."""
    shape = np.max([role.last_levels.shape for role in roles.values()], axis=0)
    best_scores, names = np.full(shape, -np.inf), np.full(shape, "mixed", dtype=object)
    has_head = np.zeros(shape, bool)
    for name, role in roles.items():
        layers, heads = role.last_levels.shape
        relative_score = (
            np.where(np.isfinite(role.last_levels), role.last_levels, -np.inf)
            / ROLE_THRESHOLDS[name]
        )
        region = np.s_[:layers, :heads]  # roles may have been measured on fewer heads
        has_head[region] |= np.isfinite(role.last_levels)
        wins = (relative_score >= 1) & (relative_score > best_scores[region])
        names[region][wins], best_scores[region][wins] = name, relative_score[wins]
    names[~has_head] = ""
    return names


def load_maps(run: Run, step: int) -> list[np.ndarray]:
    """Maps of the first probe example, [head, query, key] for each layer in order."""
    packed = run.maps(step)
    with add_map_location(run.path, step):
        return [
            decode_map(packed[name])
            for name in run.metadata("attention/layers") or ()
            if name in packed
        ]


def load_last_maps(run: Run) -> tuple[int, list[np.ndarray]]:
    """The last step with maps, and its maps; MissingDataError without any."""
    steps = run.map_steps()
    if not steps:
        raise MissingDataError(f"{run.name} has no maps; see `tracking.maps_every`")
    return steps[-1], load_maps(run, steps[-1])


def format_head(layer: int, head: int) -> str:
    """Name of a head in texts: `L2 h3`."""
    return f"L{layer} h{head}"


def format_heads(mask: np.ndarray, values: np.ndarray | None = None, max_heads: int = 8) -> str:
    """Names of the first `max_heads` heads that are True in `mask`, with their values if given.

    Both arrays are [layer, head].
    """
    heads = [tuple(map(int, index)) for index in np.argwhere(mask)]
    names = [
        format_head(*head) + ("" if values is None else f" ({values[head]:.2f})")
        for head in heads[:max_heads]
    ]
    more = f" and {len(heads) - max_heads} more" if len(heads) > max_heads else ""
    return ", ".join(names) + more


def compute_output_norms(run: Run) -> dict[int, np.ndarray]:
    """Norm ‖W_output·W_value‖ of every head of the best checkpoint: layer → [head].

    Only for layers whose weights have the names of this package's networks.
    """
    checkpoint = run.load_checkpoint("best") or run.load_checkpoint()
    if checkpoint is None:
        raise MissingDataError(f"{run.name} has no checkpoint")
    norms: dict[int, np.ndarray] = {}
    layers, heads = run.metadata("attention/layers") or [], run.metadata("attention/heads") or []
    for layer, (path, head_count) in enumerate(zip(layers, heads, strict=True)):
        # averaged weights first: the best score was measured with them
        for prefix in ("average", "model"):
            names = [f"{prefix}.{path}.{weight}.weight" for weight in ("output", "value")]
            if all(name in checkpoint.tensors for name in names):
                output, value = (checkpoint.tensors[name].float().numpy() for name in names)
                norms[layer] = _head_output_norms(output, value, head_count)
                break
    if not norms:
        raise MissingDataError(f"{run.name} has no weights named `output` and `value`")
    return norms


def _head_output_norms(output: np.ndarray, value: np.ndarray, heads: int) -> np.ndarray:
    """Norm of each head, from the weights of the output (E, H · D) and value projections."""
    head_width = output.shape[1] // heads  # D
    heads_per_value_head = output.shape[1] // value.shape[0]  # query heads that share a value head
    return np.array(
        [
            np.linalg.norm(
                output[:, head * head_width : (head + 1) * head_width]
                @ value[value_head * head_width : (value_head + 1) * head_width]
            )
            for head, value_head in enumerate(np.arange(heads) // heads_per_value_head)
        ]
    )


def _roles_from_maps(run: Run) -> dict[str, RoleScores]:
    """Scores of the roles that need maps; a label is the text of one token of the probe."""
    steps = run.map_steps()
    all_labels = run.metadata("probe/labels")
    labels = all_labels[0] if all_labels else None
    scores: dict[str, list[list[np.ndarray]]] = {}
    for step in steps:
        layers = [dict(_score_layer(maps, labels)) for maps in load_maps(run, step)]
        for name in layers[0] if layers else ():
            scores.setdefault(name, []).append(
                [layer.get(name, np.full(1, np.nan)) for layer in layers]
            )
    return {
        name: RoleScores(name, np.array(steps[-len(snapshots) :]), _stack_snapshots(snapshots))
        for name, snapshots in scores.items()
    }


def _score_layer(maps: np.ndarray, labels: list[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """Scores of one layer by role, [head] each; `maps` [head, query, key], `labels` by key."""
    _, queries, keys = maps.shape
    distance = np.arange(keys) - np.arange(keys - queries, keys)[:, None]
    visible = maps.max(axis=0) > 0  # weights that round to 0 in all heads count as masked
    has_choice = visible.sum(axis=1) > 1  # queries with a choice
    if not has_choice.any():
        return
    yield (
        "positional",
        _score_positional(maps[:, has_choice], distance[has_choice], visible[has_choice]),
    )
    yield (
        "local",
        _excess_mass(
            maps[:, has_choice],
            (np.abs(distance) <= MAX_LOCAL_DISTANCE)[has_choice],
            visible[has_choice],
        ),
    )
    if labels is not None and len(labels) >= keys:
        delimiters = np.array([_is_delimiter(label) for label in labels[:keys]])
        if delimiters.any() and not delimiters.all():
            yield (
                "delimiter",
                _excess_mass(
                    maps[:, has_choice],
                    np.broadcast_to(delimiters, visible.shape)[has_choice],
                    visible[has_choice],
                ),
            )


def _score_positional(maps: np.ndarray, distance: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Largest mean mass at one distance of key from query, [head]."""
    shifted_distance = (distance - distance.min())[visible]
    query_count = np.bincount(shifted_distance)
    is_common = query_count >= len(distance) / 2  # distances that most queries can attend to
    if not is_common.any():
        return np.zeros(len(maps))
    masses = [np.bincount(shifted_distance, head[visible]) for head in maps]
    return np.array([(mass[is_common] / query_count[is_common]).max() for mass in masses])


def _excess_mass(maps: np.ndarray, key_mask: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Mass on the keys that are True in `key_mask` [query, key], rescaled, [head].

    0 for a uniform head, 1 for no mass elsewhere.
    """
    uniform_mass = (key_mask & visible).sum(axis=1) / visible.sum(axis=1)
    rows = uniform_mass < 1  # rows that see other keys too
    if not rows.any():
        return np.full(len(maps), np.nan)
    mass = (maps * key_mask).sum(axis=2)[:, rows].mean(axis=1)
    expected = uniform_mass[rows].mean()
    return np.clip((mass - expected) / (1 - expected), 0, 1)


def _is_delimiter(label: str) -> bool:
    """Whether a token is blank, punctuation, or special: `[SEP]`, `<s>`."""
    is_special = len(label) > 2 and (label[0] + label[-1]) in ("[]", "<>")
    return is_special or (bool(label) and not any(map(str.isalnum, label)))


def _stack_snapshots(snapshots: list[list[np.ndarray]]) -> np.ndarray:
    """Scores by snapshot and layer as one array, [snapshot, layer, head], filled with NaN."""
    max_heads = max(len(scores) for snapshot in snapshots for scores in snapshot)
    stacked = np.full((len(snapshots), max(map(len, snapshots)), max_heads), np.nan)
    for index, snapshot in enumerate(snapshots):
        for layer, scores in enumerate(snapshot):
            stacked[index, layer, : len(scores)] = scores
    return stacked
