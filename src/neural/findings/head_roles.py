"""Roles of attention heads, and the norm of their output.

A snapshot is the attention of the probe, a fixed batch of validation examples, at one training step
(capture/tracker.py). Maps are its attention weights; measures are numbers for each layer and head.
Mass is the sum of attention weights, averaged over queries; a uniform head attends equally to all
visible keys.

Each role has a score from 0 to 1 for every snapshot, layer and head, and a threshold; ROLES defines
them. A head has a role at the end if the last level of its score, which is the mean since its last
jump, reaches the threshold. The last value alone is not used: noise may lift it over the threshold
(stats/change_points.py).

The scores of the first four roles are measures, recorded at every snapshot. Those of the last three
are computed from maps. A training stores the maps of the first probe example only, so there they
are about that example; a capture (capture_roles.py) has the maps of all examples, and a run of
`neural watch` stores its scores.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from neural.capture.map_encoding import add_map_location, decode_real_rows, to_shares
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError, load_measure
from neural.runs.run_reader import ROLES_PREFIX
from neural.stats.change_points import estimate_last_level, find_onset


class RoleDefinition(NamedTuple):
    """What a role is, and from which score on a head has it."""

    definition: str
    """What its score is, for people."""
    threshold: float
    """Smallest score of a head with the role."""
    measure: str = ""
    """Name of the attention measure that is the score; empty if it comes from maps."""


MAX_LOCAL_DISTANCE = 3
"""Largest distance of query and key, in positions, that counts as local."""
MIN_ROLE_POSITIONS = 10
"""Shorter inputs give no roles: untrained heads would have one in more than 5 % of the cases.

`python -m tests.validity.test_chance_roles` prints their share by length.
"""
MIN_REPETITIONS = 3
"""Queries whose token has occurred before, from which on "induction" is a role."""
ROLES = {
    "uniform": RoleDefinition(
        "The entropy of the weights, divided by that of a head that attends equally to all visible "
        "keys. It is no pattern, and a uniform head has no other role.",
        0.95,
        "relative_entropy",
    ),
    "sink": RoleDefinition(
        "The mass on the first key of the sequence (often [CLS] or <s>), beyond that of a uniform "
        "head. Such a head does little on this input; it is not dead, and may work on another.",
        0.5,
        "sink_excess",
    ),
    "previous token": RoleDefinition(
        "The mass on the key before the query.", 0.5, "previous_token_mass"
    ),
    "induction": RoleDefinition(
        "The mass on the token after the previous occurrence of the query's token. At least "
        f"{MIN_REPETITIONS} queries need such an occurrence.",
        0.4,
        "induction_mass",
    ),
    "positional": RoleDefinition(
        "The mass at one distance, the same for all queries, beyond that of a uniform head: the "
        "largest over distances. A previous-token head is not called positional.",
        0.5,
    ),
    "local": RoleDefinition(
        f"The mass within {MAX_LOCAL_DISTANCE} positions of the query, beyond that of a uniform head.",
        0.8,
    ),
    "delimiter": RoleDefinition(
        "The mass on blanks, punctuation and special tokens such as [SEP], beyond that of a uniform "
        "head. The first key does not count: a head that rests there is a sink.",
        0.5,
    ),
}
"""The roles, by name.

A head with several roles gets the one whose score is the largest multiple of its threshold.
"""
ROLE_THRESHOLDS = {name: role.threshold for name, role in ROLES.items()}
"""Smallest score of a head with the role."""
ROLE_MEASURES = {role.measure: name for name, role in ROLES.items() if role.measure}
"""Name of an attention measure → the role whose score it is."""
TOO_SHORT = "too short to tell"
"""In place of a role, if the input has fewer than MIN_ROLE_POSITIONS positions."""
NO_ROLES = {
    "mixed": "No role: what the head attends to has none of the patterns that are roles.",
    TOO_SHORT: f"With fewer than {MIN_ROLE_POSITIONS} positions, a head has a role by chance: more "
    "than 5 % of the heads of untrained networks do.",
}
"""Names in place of a role, and what they mean."""
ROLES_OF_NO_PATTERN = (*NO_ROLES, "uniform", "")
"""Names in the result of `assign_head_roles` that are no role: "uniform" has no pattern at all."""


@dataclass(frozen=True, eq=False)
class RoleScores:
    """Scores of one role for all snapshots, layers and heads."""

    name: str
    """Key of ROLES; or TOO_SHORT, with a score of 1 for heads whose input is too short."""
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


_FOUND_ROLES: WeakKeyDictionary[Record, tuple[int, dict[str, RoleScores]]] = WeakKeyDictionary()
"""Open run that has ended → its change counter and its roles.

A page needs the roles of a run several times, and all its maps are decoded for them.
"""


def find_head_roles(run: Record) -> dict[str, RoleScores]:
    """Scores of all roles that the run has data for; MissingDataError without any."""
    if run.status.state == "running":
        return _compute_head_roles(run)
    counter, roles = _FOUND_ROLES.get(run, (None, {}))
    if counter != run.change_counter():
        counter = run.change_counter()
        roles = _compute_head_roles(run)
        _FOUND_ROLES[run] = counter, roles
    return dict(roles)


def _compute_head_roles(run: Record) -> dict[str, RoleScores]:
    if stored := run.role_names():
        return {name: RoleScores(name, *load_measure(run, ROLES_PREFIX + name)) for name in stored}
    roles = score_measures(
        {name: load_measure(run, name) for name in run.measure_names() if name in ROLE_MEASURES},
        count_repetitions(run.metadata("probe/labels")),
    )
    roles |= {name: role for name, role in _roles_from_maps(run).items() if name not in roles}
    if not roles:
        raise MissingDataError(
            f"{run.name} has no measure `relative_entropy` and no maps; see `tracking`"
        )
    return roles


def score_measures(
    measures: Mapping[str, tuple[np.ndarray, np.ndarray]], repetitions: int | None
) -> dict[str, RoleScores]:
    """Scores of the roles that are measures: name → (steps, values [step, layer, head]).

    `repetitions`: as of `count_repetitions`.
    """
    roles = {
        role: RoleScores(role, *measures[name])
        for name, role in ROLE_MEASURES.items()
        if name in measures
    }
    if repetitions is not None and repetitions < MIN_REPETITIONS:
        roles.pop("induction", None)
    return roles


def count_repetitions(tokens: Sequence[Sequence[Hashable]] | None) -> int | None:
    """Number of positions whose token has occurred before, but not just before; None if unknown."""
    if tokens is None:
        return None
    count = 0
    for row in tokens:
        last_seen: dict[Hashable, int] = {}
        for position, token in enumerate(row):
            count += position - last_seen.get(token, position) > 1
            last_seen[token] = position
    return count


def assign_head_roles(roles: dict[str, RoleScores]) -> np.ndarray:
    """Name of the role of every head at the end, [layer, head].

    "mixed" for heads without a role, TOO_SHORT if the input does not tell, "" for positions where a
    layer has fewer heads.
    """
    shape = np.max([role.last_levels.shape for role in roles.values()], axis=0)
    best_scores, names = np.full(shape, -np.inf), np.full(shape, "mixed", dtype=object)
    is_measured = np.zeros(shape, bool)  # False where a layer has fewer heads
    for name in (*ROLES, TOO_SHORT):  # "positional" after "previous token", which excludes it
        if (role := roles.get(name)) is None:
            continue
        layers, heads = role.last_levels.shape
        relative_score = np.where(
            np.isfinite(role.last_levels), role.last_levels, -np.inf
        ) / ROLE_THRESHOLDS.get(name, 1)
        region = np.s_[:layers, :heads]  # the arrays of roles may have different shapes
        is_measured[region] |= np.isfinite(role.last_levels)
        if name == "uniform":
            relative_score[relative_score >= 1] = np.inf
        elif name == TOO_SHORT:  # instead of every role but "uniform"
            relative_score[relative_score >= 1] = sys.float_info.max
        wins = (relative_score >= 1) & (relative_score > best_scores[region])
        if name == "positional":
            wins &= names[region] != "previous token"
        names[region][wins], best_scores[region][wins] = name, relative_score[wins]
    names[~is_measured] = ""
    return names


def load_maps(run: Record, step: int) -> list[np.ndarray]:
    """Maps of the first probe example, [head, query, key] for each layer in order.

    Rows of padding are 0. Signed maps are returned as |w| / Σ|w|, as the measures of such
    mechanisms are computed.
    """
    packed = run.maps(step)
    with add_map_location(run.path or Path(run.name), step):
        return [
            to_shares(decode_real_rows(packed[name]))
            for name in run.metadata("attention/layers") or ()
            if name in packed
        ]


def load_last_maps(run: Record) -> tuple[int, list[np.ndarray]]:
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


def compute_output_norms(run: Record) -> dict[int, np.ndarray]:
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


def _roles_from_maps(run: Record) -> dict[str, RoleScores]:
    """Scores of the roles that need maps, of the first probe example.

    `labels` are the texts of its tokens, in order.
    """
    steps = run.map_steps()
    all_labels = run.metadata("probe/labels")
    labels = all_labels[0] if all_labels else None
    return stack_layer_scores(
        steps,
        [
            [
                dict(score_layer(stack_rows(maps[None], [labels], maps[None].max(axis=(1, 3)) > 0)))
                for maps in load_maps(run, step)
            ]
            for step in steps
        ],
    )


def stack_layer_scores(
    steps: Sequence[int], snapshots: Sequence[Sequence[Mapping[str, np.ndarray]]]
) -> dict[str, RoleScores]:
    """Scores by role of [snapshot][layer]: role → scores of the layer's heads.

    A layer without a role's score counts as one head with NaN; snapshots without any are left out.
    """
    roles = {}
    for name in dict.fromkeys(name for layers in snapshots for layer in layers for name in layer):
        has_score = [any(name in layer for layer in layers) for layers in snapshots]
        scores = [
            [layer.get(name, np.full(1, np.nan)) for layer in layers]
            for layers in compress(snapshots, has_score)
        ]
        roles[name] = RoleScores(name, np.array(steps)[has_score], _stack_snapshots(scores))
    return roles


class MapRows(NamedTuple):
    """Rows (queries) of the maps of one layer, of all examples."""

    weights: np.ndarray
    """[head, row, key]."""
    distance: np.ndarray
    """Key position minus query position, [row, key]."""
    delimiters: np.ndarray | None
    """True for keys that are delimiters, [row, key]; None if texts are not known."""
    length: float
    """Rows of the example to which a row belongs, on average over rows; without padding."""


def stack_rows(
    maps: np.ndarray, labels: Sequence[Sequence[str] | None], is_real: np.ndarray | None = None
) -> MapRows:
    """The rows of all examples together; `maps` is [example, head, query, key].

    The queries are the last positions of the keys' sequence. `labels` has the texts of each
    example's keys; `is_real` [example, query] is False for padding, whose rows do not count.
    """
    examples, _, queries, keys = maps.shape
    is_real = np.ones((examples, queries), bool) if is_real is None else is_real
    distance = np.arange(keys) - np.arange(keys - queries, keys)[:, None]
    delimiters = [
        _find_delimiters(example, texts, keys)
        for example, texts in zip(maps, labels, strict=True)
        if texts is not None and len(texts) >= keys
    ]
    has_texts = len(delimiters) == examples
    rows_shape = (examples, queries, keys)
    return MapRows(
        maps.transpose(1, 0, 2, 3)[:, is_real],
        np.broadcast_to(distance, rows_shape)[is_real],
        np.broadcast_to(np.stack(delimiters)[:, None], rows_shape)[is_real] if has_texts else None,
        average_length(is_real),
    )


def average_length(is_real: np.ndarray) -> float:
    """Number of positions of the example to which a position belongs, on average.

    `is_real` [example, position] is False for padding.
    """
    lengths = is_real.sum(axis=1)
    return float((lengths**2).sum() / max(1, lengths.sum()))


def _find_delimiters(maps: np.ndarray, texts: Sequence[str], keys: int) -> np.ndarray:
    """True for keys of one example that are delimiters; never for the first that has any weight."""
    delimiters = np.array([is_delimiter(text) for text in texts[:keys]], bool)
    delimiters[maps.any(axis=(0, 1)).argmax()] = False
    return delimiters


def score_layer(rows: MapRows) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (role, score [head]) of one layer."""
    return sum_rows(rows).score()


@dataclass(frozen=True)
class MassSums:
    """Mass on some keys, summed over the rows that also see other keys."""

    mass: np.ndarray
    """[head]."""
    expected: float
    """That of a uniform head."""
    rows: int

    def __add__(self, other: MassSums) -> MassSums:
        return MassSums(
            self.mass + other.mass, self.expected + other.expected, self.rows + other.rows
        )

    def score_excess(self) -> np.ndarray:
        """Mean mass beyond a uniform head's, [head].

        Rescaled: 0 for a uniform head or less, 1 if all mass is on these keys.
        """
        if not self.rows:
            return np.full(len(self.mass), np.nan)
        expected = self.expected / self.rows
        return np.clip((self.mass / self.rows - expected) / (1 - expected), 0, 1)


@dataclass(frozen=True)
class PatternSums:
    """Sums over the rows that see more than one key."""

    rows: int
    entropy: np.ndarray
    """Relative entropy of each head, [head], of `entropy_rows` rows."""
    entropy_rows: np.ndarray
    mass_by_distance: np.ndarray
    """[head, distance of key from query]; the last head is a uniform one, the middle is 0."""
    rows_by_distance: np.ndarray
    """Rows that see a key at this distance."""
    local: MassSums
    delimiters: MassSums | None
    """None if the texts of the keys are not known."""
    delimiter_count: int

    def __add__(self, other: PatternSums) -> PatternSums:
        first, second = self.delimiters, other.delimiters
        return PatternSums(
            self.rows + other.rows,
            self.entropy + other.entropy,
            self.entropy_rows + other.entropy_rows,
            _add_centered(self.mass_by_distance, other.mass_by_distance),
            _add_centered(self.rows_by_distance, other.rows_by_distance),
            self.local + other.local,
            None if first is None or second is None else first + second,
            self.delimiter_count + other.delimiter_count,
        )

    def score_positional(self) -> np.ndarray:
        """Mean mass at one distance of key from query, beyond a uniform head's, [head].

        The largest over all distances; rescaled as `MassSums.score_excess`.
        """
        # distances that most queries can attend to
        is_common = (self.rows_by_distance >= self.rows / 2) & (self.rows_by_distance > 0)
        if not is_common.any():
            return np.zeros(len(self.mass_by_distance) - 1)
        *means, expected = self.mass_by_distance[:, is_common] / self.rows_by_distance[is_common]
        excess = [(mean - expected) / np.maximum(1 - expected, 1e-9) for mean in means]
        return np.clip([head_excess.max() for head_excess in excess], 0, 1)


@dataclass(frozen=True)
class RowSums:
    """Sums over rows of one layer, from which the roles of its heads are scored.

    The sums of several batches are added. That gives the scores of all examples together, which a
    mean of scores would not: the distance of a positional head is the same in all of them.
    """

    heads: int
    rows: int
    lengths: float
    """Sum over rows of the length of their example."""
    patterns: PatternSums | None
    """None if positions are not known."""

    def __add__(self, other: RowSums) -> RowSums:
        first, second = self.patterns, other.patterns
        return RowSums(
            self.heads,
            self.rows + other.rows,
            self.lengths + other.lengths,
            None if first is None or second is None else first + second,
        )

    def score(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (role, score [head])."""
        length = self.lengths / max(1, self.rows)
        yield TOO_SHORT, np.full(self.heads, float(length < MIN_ROLE_POSITIONS))
        patterns = self.patterns
        if patterns is None or not patterns.rows:
            return
        count = np.maximum(patterns.entropy_rows, 1)
        yield "uniform", np.where(patterns.entropy_rows > 0, patterns.entropy / count, np.nan)
        yield "positional", patterns.score_positional()
        yield "local", patterns.local.score_excess()
        if patterns.delimiters is not None and patterns.delimiter_count:
            yield "delimiter", patterns.delimiters.score_excess()


def sum_rows(rows: MapRows) -> RowSums:
    """The sums of one batch."""
    maps, distance, delimiters = rows.weights, rows.distance, rows.delimiters
    heads, count, keys = maps.shape
    visible = maps.max(axis=0) > 0  # weights that round to 0 in all heads count as masked
    has_choice = visible.sum(axis=1) > 1  # queries that see more than one key
    entropy = _compute_relative_entropy(maps, distance)
    maps, distance, visible = maps[:, has_choice], distance[has_choice], visible[has_choice]
    index = (distance + keys - 1)[visible]
    uniform = np.broadcast_to(1 / visible.sum(axis=1, keepdims=True), visible.shape)
    width = 2 * keys - 1
    patterns = PatternSums(
        len(distance),
        np.where(np.isfinite(entropy), entropy, 0).sum(axis=1),
        np.isfinite(entropy).sum(axis=1),
        np.stack([np.bincount(index, head[visible], width) for head in (*maps, uniform)]),
        np.bincount(index, minlength=width),
        _sum_mass(maps, np.abs(distance) <= MAX_LOCAL_DISTANCE, visible),
        None if delimiters is None else _sum_mass(maps, delimiters[has_choice], visible),
        0 if delimiters is None else int(delimiters.sum()),
    )
    return RowSums(heads, count, rows.length * count, patterns)


def _add_centered(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Sum of arrays whose last axes may be of different lengths, with the same middle."""
    width = max(first.shape[-1], second.shape[-1])
    total = np.zeros((*first.shape[:-1], width))
    for part in (first, second):
        margin = (width - part.shape[-1]) // 2
        total[..., margin : width - margin] += part
    return total


def _compute_relative_entropy(maps: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Entropy over that of a uniform head, [head, row]; NaN for queries that see one key.

    A weight of 0 does not tell a masked key from one that rounds to 0, so only keys after the query
    of a causal map and after the last key with any weight count as masked. Too many visible keys
    make a head less uniform, never more.
    """
    is_causal = not maps[:, distance > 0].any()
    last_key = np.flatnonzero(maps.any(axis=(0, 1))).max(initial=0)
    visible = np.broadcast_to(np.arange(maps.shape[2]) <= last_key, distance.shape)
    key_count = (visible & (distance <= 0) if is_causal else visible).sum(axis=1)
    total = maps.sum(axis=2, keepdims=True)
    rows = maps / np.where(total > 0, total, 1)
    entropy = -(rows * np.log(np.where(rows > 0, rows, 1))).sum(axis=2)
    return np.where(key_count > 1, entropy / np.log(np.maximum(key_count, 2)), np.nan)


def _sum_mass(maps: np.ndarray, key_mask: np.ndarray, visible: np.ndarray) -> MassSums:
    """Mass on the keys that are True in `key_mask` [query, key]."""
    uniform_mass = (key_mask & visible).sum(axis=1) / visible.sum(axis=1)
    rows = uniform_mass < 1  # queries that also see keys outside of the mask
    mass = (maps * key_mask).sum(axis=2)[:, rows].sum(axis=1)
    return MassSums(mass, float(uniform_mass[rows].sum()), int(rows.sum()))


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
