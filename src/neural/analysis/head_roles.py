"""Roles of attention heads, and the norm of their output.

A snapshot is the attention of the probe, a fixed batch of validation examples, at one training step
(capture/tracker.py). Maps are its attention weights; measures are numbers for each layer and head.
Mass is the sum of attention weights, averaged over queries; a uniform head attends equally to all
visible keys.

Each role has a score from 0 to 1 for every snapshot, layer and head, and a threshold. A head has a
role at the end if the last level of its score, which is the mean since its last jump, reaches the
threshold. The last value alone is not used: noise may lift it over the threshold
(analysis/change_points.py). The scores of the first four roles are measures, recorded at every
snapshot; those of the last three are computed from the maps of the first probe example, at
snapshots that have maps, and so is that of "uniform" where its measure was not recorded:

    uniform          entropy divided by that of a uniform head
    sink             mass on the first key, beyond that of a uniform head
    previous token   mass on the key before the query
    induction        mass on the token after the previous occurrence of the query token
    positional       mass at one distance, the same for all queries, beyond that of a uniform head;
                     the largest over distances
    local            mass within 3 positions, beyond that of a uniform head
    delimiter        mass on blanks, punctuation and special tokens such as [SEP], beyond that of
                     a uniform head

A single capture of attention without a run counts as a run with one snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from neural.analysis.change_points import estimate_last_level, find_onset
from neural.analysis.run_loading import MissingDataError, finite_mean, load_measure
from neural.capture.map_encoding import add_map_location, decode_map, to_shares
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
"""Smallest score of a head with the role.

A uniform head is uniform whatever else it scores: with few keys, equal weights are also local or at
one distance. Another head with several roles gets the one whose score is the largest multiple of
its threshold. But a previous-token head is not called positional: all its mass is at one distance
in any case.
"""
ROLES_OF_NO_PATTERN = ("mixed", "uniform", "")
"""Names in the result of `assign_head_roles` that are no role: "uniform" has no pattern at all."""
MAX_LOCAL_DISTANCE = 3
"""Largest distance of query and key, in positions, that counts as local."""


@dataclass(frozen=True, eq=False)
class RoleScores:
    """Scores of one role for all snapshots, layers and heads."""

    name: str
    """Key of ROLE_THRESHOLDS."""
    steps: np.ndarray
    """Training steps of the snapshots."""
    scores: np.ndarray
    """[step, layer, head]; NaN where a layer has fewer heads than the largest one."""

    @cached_property
    def last_levels(self) -> np.ndarray:
        """The last level of each head's score, [layer, head]."""
        shape = self.scores.shape[1:]
        levels = [_head_last_level(self.scores[:, *index]) for index in np.ndindex(*shape)]
        return np.array(levels, dtype=float).reshape(shape)

    def find_onset_step(self, layer: int, head: int) -> int:
        """The step since which a head has had this role without interruption.

        Only for heads that have the role at the end.
        """
        scores = self.scores[:, layer, head]
        finite = np.isfinite(scores)
        return int(self.steps[finite][find_onset(scores[finite], ROLE_THRESHOLDS[self.name]) or 0])


def _head_last_level(scores: np.ndarray) -> float:
    """Last level of one head's scores, [step]; NaN without a finite one."""
    finite = scores[np.isfinite(scores)]
    return estimate_last_level(finite) if len(finite) else math.nan


_FOUND_ROLES: WeakKeyDictionary[Run, tuple[int, dict[str, RoleScores]]] = WeakKeyDictionary()
"""Open run that has ended → its change counter and its roles.

A page needs the roles of a run several times, and all its maps are decoded for them.
"""


def find_head_roles(run: Run) -> dict[str, RoleScores]:
    """Scores of all roles that the run has data for; MissingDataError without any."""
    if run.status.state == "running":
        return _compute_head_roles(run)
    counter, roles = _FOUND_ROLES.get(run, (None, {}))
    if counter != run.change_counter():
        counter = run.change_counter()
        roles = _compute_head_roles(run)
        _FOUND_ROLES[run] = counter, roles
    return dict(roles)


def _compute_head_roles(run: Run) -> dict[str, RoleScores]:
    measure_names, roles = set(run.measure_names()), {}
    for name, source in ROLE_MEASURES.items():
        if source in measure_names:
            roles[name] = RoleScores(name, *load_measure(run, source))
    roles |= {name: role for name, role in _roles_from_maps(run).items() if name not in roles}
    if not roles:
        raise MissingDataError(
            f"{run.name} has no measure `relative_entropy` and no maps; see `tracking`"
        )
    return roles


def score_single_snapshot(
    measures: Mapping[str, np.ndarray],
    maps: Sequence[np.ndarray | None],
    labels: Sequence[list[str] | None],
) -> dict[str, RoleScores]:
    """Scores of all roles for one snapshot without a run, as step 0.

    `measures` are [layer, head] by name. `maps` has [head, query, key] for each layer, and None for
    layers whose queries are not the last positions of the keys' sequence; `labels` has the texts of
    each layer's keys, None without texts. Empty if nothing is known about any role.
    """
    step = np.array([0])
    roles = {
        name: RoleScores(name, step, measures[source][None])
        for name, source in ROLE_MEASURES.items()
        if source in measures
    }
    layers = [
        {} if layer_maps is None else dict(_score_layer(to_shares(layer_maps), texts))
        for layer_maps, texts in zip(maps, labels, strict=True)
    ]
    for name in dict.fromkeys(name for layer in layers for name in layer if name not in roles):
        snapshot = [layer.get(name, np.full(1, np.nan)) for layer in layers]
        roles[name] = RoleScores(name, step, _stack_snapshots([snapshot]))
    return roles


def assign_head_roles(roles: dict[str, RoleScores]) -> np.ndarray:
    """Name of the role of every head at the end, [layer, head].

    "mixed" for heads without a role, "" for positions where a layer has fewer heads.
    """
    shape = np.max([role.last_levels.shape for role in roles.values()], axis=0)
    best_scores, names = np.full(shape, -np.inf), np.full(shape, "mixed", dtype=object)
    is_measured = np.zeros(shape, bool)  # False where a layer has fewer heads
    for name, role in roles.items():
        layers, heads = role.last_levels.shape
        relative_score = (
            np.where(np.isfinite(role.last_levels), role.last_levels, -np.inf)
            / ROLE_THRESHOLDS[name]
        )
        region = np.s_[:layers, :heads]  # the arrays of roles may have different shapes
        is_measured[region] |= np.isfinite(role.last_levels)
        if name == "uniform":
            relative_score[relative_score >= 1] = np.inf
        wins = (relative_score >= 1) & (relative_score > best_scores[region])
        if name == "positional":
            wins &= names[region] != "previous token"
        names[region][wins], best_scores[region][wins] = name, relative_score[wins]
    names[~is_measured] = ""
    return names


def load_maps(run: Run, step: int) -> list[np.ndarray]:
    """Maps of the first probe example, [head, query, key] for each layer in order.

    Signed maps are returned as |w| / Σ|w|, as the measures of such mechanisms are computed.
    """
    packed = run.maps(step)
    with add_map_location(run.path, step):
        return [
            to_shares(decode_map(packed[name]))
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
    """Frobenius norm ‖W_output · W_value‖ of every head in the best checkpoint: layer → [head].

    W_value and W_output are the head's parts of the value and the output projection. Layers whose
    weights do not have the names of this package's networks are left out.
    """
    checkpoint = run.load_checkpoint("best") or run.load_checkpoint()
    if checkpoint is None:
        raise MissingDataError(f"{run.name} has no checkpoint")
    norms: dict[int, np.ndarray] = {}
    layers, heads = run.metadata("attention/layers") or [], run.metadata("attention/heads") or []
    for layer, (path, head_count) in enumerate(zip(layers, heads, strict=True)):
        # moving averages of the weights, if there are any: the best score was measured with them
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
    """Norm of each head [head], from the weights of its layer's projections.

    `output` is (E, H · D) and `value` (H_v · D, E), with H_v ≤ H value heads: with grouped-query
    attention several heads share one.
    """
    head_width = output.shape[1] // heads  # D
    heads_per_value_head = output.shape[1] // value.shape[0]
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
    """Scores of the roles that need maps, of the first probe example.

    `labels` are the texts of its tokens, in order.
    """
    steps = run.map_steps()
    all_labels = run.metadata("probe/labels")
    labels = all_labels[0] if all_labels else None
    scores: dict[str, list[list[np.ndarray]]] = {}
    for step in steps:
        layers = [dict(_score_layer(maps, labels)) for maps in load_maps(run, step)]
        for name in layers[0] if layers else ():
            # a layer without this score counts as one head with NaN
            scores.setdefault(name, []).append(
                [layer.get(name, np.full(1, np.nan)) for layer in layers]
            )
    return {
        # early steps may lack the score, so the scores belong to the last steps
        name: RoleScores(name, np.array(steps[-len(snapshots) :]), _stack_snapshots(snapshots))
        for name, snapshots in scores.items()
    }


def _score_layer(maps: np.ndarray, labels: list[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (role, score [head]) of one layer.

    `maps` is [head, query, key]; `labels` has the text of each key, None without texts.
    """
    _, queries, keys = maps.shape
    # key position minus query position, [query, key]; the queries are the last positions
    distance = np.arange(keys) - np.arange(keys - queries, keys)[:, None]
    visible = maps.max(axis=0) > 0  # weights that round to 0 in all heads count as masked
    has_choice = visible.sum(axis=1) > 1  # queries that see more than one key
    if not has_choice.any():
        return
    yield "uniform", _measure_relative_entropy(maps, distance)
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
        delimiters = np.array([is_delimiter(label) for label in labels[:keys]])
        if delimiters.any() and not delimiters.all():
            yield (
                "delimiter",
                _excess_mass(
                    maps[:, has_choice],
                    np.broadcast_to(delimiters, visible.shape)[has_choice],
                    visible[has_choice],
                ),
            )


def _measure_relative_entropy(maps: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Entropy over that of a uniform head, averaged over queries that see several keys, [head].

    A weight of 0 does not tell a masked key from one that rounds to 0, so only keys after the query
    of a causal map and after the last key with any weight count as masked. Too many visible keys
    make a head less uniform, never more.
    """
    is_causal = not maps[:, distance > 0].any()
    last_key = np.flatnonzero(maps.any(axis=(0, 1)))[-1]
    visible = np.broadcast_to(np.arange(maps.shape[2]) <= last_key, distance.shape)
    key_count = (visible & (distance <= 0) if is_causal else visible).sum(axis=1)
    total = maps.sum(axis=2, keepdims=True)
    rows = maps / np.where(total > 0, total, 1)
    entropy = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=2)
    relative = np.where(key_count > 1, entropy / np.log(np.maximum(key_count, 2)), np.nan)
    return finite_mean(relative, axis=1)


def _score_positional(maps: np.ndarray, distance: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Mean mass at one distance of key from query, beyond a uniform head's, [head].

    The largest over all distances; rescaled as `_excess_mass`. `distance` and `visible` are
    [query, key].
    """
    shifted_distance = (distance - distance.min())[visible]
    query_count = np.bincount(shifted_distance)
    is_common = query_count >= len(distance) / 2  # distances that most queries can attend to
    if not is_common.any():
        return np.zeros(len(maps))
    uniform = np.broadcast_to(1 / visible.sum(axis=1, keepdims=True), visible.shape)

    def mean_mass(weights: np.ndarray) -> np.ndarray:
        """Mean weight at each common distance; `weights` is [query, key]."""
        mass = np.bincount(shifted_distance, weights[visible])
        return mass[is_common] / query_count[is_common]

    expected = mean_mass(uniform)
    excess = [(mean_mass(head) - expected) / np.maximum(1 - expected, 1e-9) for head in maps]
    return np.clip([head_excess.max() for head_excess in excess], 0, 1)


def _excess_mass(maps: np.ndarray, key_mask: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Mass on the keys that are True in `key_mask` [query, key], beyond a uniform head's, [head].

    Rescaled: 0 for a uniform head or less, 1 if all mass is on these keys.
    """
    uniform_mass = (key_mask & visible).sum(axis=1) / visible.sum(axis=1)
    rows = uniform_mass < 1  # queries that also see keys outside of the mask
    if not rows.any():
        return np.full(len(maps), np.nan)
    mass = (maps * key_mask).sum(axis=2)[:, rows].mean(axis=1)
    expected = uniform_mass[rows].mean()
    return np.clip((mass - expected) / (1 - expected), 0, 1)


def is_delimiter(label: str) -> bool:
    """Whether a token is blank, punctuation, or special: `[SEP]`, `<s>`."""
    is_special = len(label) > 2 and (label[0] + label[-1]) in ("[]", "<>")
    return is_special or (bool(label) and not any(map(str.isalnum, label)))


def _stack_snapshots(snapshots: list[list[np.ndarray]]) -> np.ndarray:
    """Stack scores by snapshot and layer, [snapshot, layer, head]; NaN where heads are missing."""
    max_heads = max(len(scores) for snapshot in snapshots for scores in snapshot)
    stacked = np.full((len(snapshots), max(map(len, snapshots)), max_heads), np.nan)
    for index, snapshot in enumerate(snapshots):
        for layer, scores in enumerate(snapshot):
            stacked[index, layer, : len(scores)] = scores
    return stacked
