"""Match the heads of two models that read the same input: `neural compare A B --probe TEXT`.

    comparison = compare_models("base", "tuned", texts=["The cat sat"])
    comparison = compare_snapshots(first_run, second_run)     the stored maps of two runs
    comparison = compare_captures(watch(base, ids), watch(tuned, ids))

Heads are compared only if their maps have the same queries and keys. The layers of a model with an
encoder and a decoder therefore fall into groups, and heads are matched within each group.
findings/head_matching.py defines the divergence, the null and the verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neural.capture.capture_result import Capture
from neural.capture.map_encoding import add_map_location, decode_real_rows, is_signed_map
from neural.capture.snapshot_writer import MAX_MAP_POSITIONS
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Column, Table
from neural.findings.capture_roles import find_capture_roles
from neural.findings.head_matching import (
    DEFAULT_RESOLUTION,
    RESOLUTION_PER_KEY_8_BITS,
    SIGNIFICANCE_LEVEL,
    HeadChange,
    HeadMatching,
    HeadPair,
    MatchingError,
    ModelHeads,
    build_patterns,
    match_heads,
)
from neural.findings.head_roles import assign_head_roles, find_head_roles, format_head
from neural.findings.run_loading import MissingDataError
from neural.interpret.foreign_models import TargetError
from neural.runs.find import DEFAULT_RUNS_DIR
from neural.runs.run import Run
from neural.workflows.watch_models import ModelCapture, watch_models

MAX_LISTED_PAIRS, MAX_LISTED_CHANGES = 32, 8
"""Rows of the printed tables; JSON has all."""
MIN_SHOWN_CHANGE = 5e-5
"""Divergence, in bits, below which a head has not changed: it is printed with four decimals."""
MIN_FIRM_ROWS = 8
"""Fewer queries give patterns that follow single weights; the comparison then has a note."""


@dataclass(frozen=True, eq=False)
class LayerMaps:
    """The maps of one layer, with what their rows and columns are."""

    number: int
    name: str
    weights: np.ndarray
    """[head, row, key]; rows are the queries of all examples, without padding."""
    extra_mass: np.ndarray
    """Weight on keys that are no positions (a learned sink), [head, row]."""
    positions: np.ndarray | None
    """Key index of the query of each row; None if queries are of another sequence."""
    query_texts: list[str] | None
    key_texts: list[list[str]] | None
    """Tokens of the keys of each row."""

    @property
    def group(self) -> tuple[Any, ...]:
        """Equal for layers whose maps have the same queries and keys."""
        texts = None if self.key_texts is None else tuple(map(tuple, self.key_texts))
        queries = None if self.query_texts is None else tuple(self.query_texts)
        return self.positions is None, *self.weights.shape[1:], queries, texts


@dataclass(frozen=True, eq=False)
class CapturedHeads:
    """One of the two models."""

    name: str
    layers: list[LayerMaps]
    roles: np.ndarray
    """Name of the role of every head, [layer, head]."""
    tokens: list[list[str]] | None
    input_description: str = ""
    notes: list[str] = field(default_factory=list)

    def count_heads(self) -> int:
        """Heads of all layers."""
        return sum(len(layer.weights) for layer in self.layers)

    def find_role(self, layer: int, head: int) -> str:
        """Role of a head; "" if roles are not known."""
        is_known = layer < self.roles.shape[0] and head < self.roles.shape[1]
        return str(self.roles[layer, head]) if is_known else ""


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Result):
    """Matched heads of two models."""

    first: CapturedHeads
    second: CapturedHeads
    matchings: list[HeadMatching]
    """One for each group of layers with the same queries and keys."""
    notes: list[str]

    @property
    def pairs(self) -> list[HeadPair]:
        """All matched heads, by layer and head of the first model."""
        return sorted(pair for matching in self.matchings for pair in matching.pairs)

    @property
    def changes(self) -> list[HeadChange]:
        """Heads with equal indices, those that changed most first."""
        changes = [change for matching in self.matchings for change in matching.changes]
        return sorted(changes, key=lambda change: -change.divergence)

    @property
    def index_p(self) -> float:
        """p-value of "equal indices mean nothing"; the smallest, times the number of groups."""
        values = [m.index_p for m in self.matchings if not math.isnan(m.index_p)]
        return min(1.0, min(values) * len(values)) if values else math.nan

    @property
    def tables(self) -> dict[str, Table]:
        """`pairs`: the matched heads. `changes`: divergence of the heads with equal indices."""
        pairs = [
            (
                format_head(*pair.first),
                format_head(*pair.second),
                self.first.find_role(*pair.first),
                self.second.find_role(*pair.second),
                pair.divergence,
                pair.cosine,
                pair.p,
                pair.verdict,
            )
            for pair in self.pairs
        ]
        changes = [(format_head(*change.head), change.divergence) for change in self.changes]
        return {"pairs": Table(PAIR_COLUMNS, pairs), "changes": Table(CHANGE_COLUMNS, changes)}

    def to_sections(self, width: int) -> list[PageSection]:
        """Both models, a table of matched heads, and the heads that changed most."""
        models = [
            (letter, model.name, f"{len(model.layers)} layers", f"{model.count_heads()} heads")
            for letter, model in (("A", self.first), ("B", self.second))
        ]
        lines = [f"input: {self.first.input_description}"] if self.first.input_description else []
        lines += [f"note: {note}" for note in self.notes]
        verdicts = [pair.verdict for pair in self.pairs]
        counts = [
            f"{verdicts.count(verdict)} {verdict}"
            for verdict in ("same head", "same role", "undecided", "not tested")
            if verdict in verdicts
        ]
        pairs = self.tables["pairs"]
        pair_lines = [", ".join(counts)]
        if len(pairs) > MAX_LISTED_PAIRS:
            pair_lines.append(f"the first {MAX_LISTED_PAIRS}; --json lists all {len(pairs)}")
        if "not tested" in verdicts:
            pair_lines.append("verdicts need four heads or more in each model")
        shown = Table(pairs.columns, pairs.rows[:MAX_LISTED_PAIRS])
        sections = [
            PageSection(title="", table_rows=models),
            shown.to_section("matched heads", "\n".join(pair_lines)),
        ]
        if lines:
            sections.insert(1, PageSection(title="", text="\n".join(lines)))
        if self.changes:
            sections.append(self._build_changes())
        return sections

    def _build_changes(self) -> PageSection:
        """Heads with equal indices, the most changed first."""
        changes = self.tables["changes"]
        rows = [row for row in changes.rows[:MAX_LISTED_CHANGES] if row[1] >= MIN_SHOWN_CHANGE]
        same_head_count = sum(
            pair.first == pair.second and pair.verdict == "same head" for pair in self.pairs
        )
        p = _format_p(self.index_p)
        lines = ["heads with equal indices"] if rows else ["no head changed"]
        lines.append(
            f"{same_head_count} of {len(self.changes)} are the same head at the same index; "
            f"permuted heads: p = {p}"
            if self.index_p <= SIGNIFICANCE_LEVEL or same_head_count
            else "nothing shows that one model derives from the other (permuted heads: p = "
            f"{p}): equal indices may mean nothing"
        )
        return Table(changes.columns, rows).to_section("changed most", "\n".join(lines))

    def build_dict(self) -> dict[str, Any]:
        """Both models, matched heads, changes."""
        return {
            "models": [
                {
                    "name": model.name,
                    "layers": {layer.number: layer.name for layer in model.layers},
                    "heads": model.count_heads(),
                }
                for model in (self.first, self.second)
            ],
            "input": self.first.input_description,
            "tokens": self.first.tokens,
            "compared_rows": [matching.compared_rows for matching in self.matchings],
            "pairs": [
                {
                    "a": {"layer": pair.first[0], "head": pair.first[1]},
                    "b": {"layer": pair.second[0], "head": pair.second[1]},
                    "roles": [
                        self.first.find_role(*pair.first),
                        self.second.find_role(*pair.second),
                    ],
                    "divergence_bits": pair.divergence,
                    "cosine": pair.cosine,
                    "ratio": pair.ratio,
                    "p": pair.p,
                    "verdict": pair.verdict,
                }
                for pair in self.pairs
            ],
            "changes": [
                {
                    "layer": change.head[0],
                    "head": change.head[1],
                    "divergence_bits": change.divergence,
                }
                for change in self.changes
            ],
            "index_p": self.index_p,
            "notes": self.notes,
        }


PAIR_COLUMNS = (
    Column("a", "A"),
    Column("b", "B"),
    Column("role_a", "role of A"),
    Column("role_b", "role of B"),
    Column("divergence", unit="bits", format="{:.4f}".format),
    Column("cosine", meaning="of the patterns without the role", format="{:.2f}".format),
    Column("p", meaning="of the same role, another head", format=lambda p: _format_p(p)),
    Column("verdict", ""),
)
CHANGE_COLUMNS = (
    Column("head", ""),
    Column("divergence", unit="bits", format=lambda bits: f"{bits:.4f} bits"),
)


def _format_p(p: float) -> str:
    return "–" if math.isnan(p) else "<0.0001" if p < 1e-4 else f"{p:.2g}"


def compare_models(
    first: str,
    second: str,
    *,
    texts: Sequence[str] = (),
    ids: Sequence[str] = (),
    build: str | None = None,
    implementation: str | None = None,
    max_length: int | None = None,
    same_layer: bool = False,
    runs: Path = DEFAULT_RUNS_DIR,
) -> ModelComparison:
    """Match the heads of two targets of `neural watch` on the same texts or token ids.

    TargetError if a target cannot be loaded or if the models read different tokens.
    """
    models = []
    for target in (first, second):
        (capture,) = watch_models(
            [target],
            texts=texts,
            ids=ids,
            build=build,
            implementation=implementation,
            max_length=max_length,
            runs=runs,
        )
        models.append(_describe_capture(capture))
    return _compare(*models, same_layer=same_layer)


def compare_captures(
    first: Capture,
    second: Capture,
    *,
    names: tuple[str, str] = ("A", "B"),
    same_layer: bool = False,
) -> ModelComparison:
    """Match the heads of two captures of `neural.watch` on the same input."""
    models = [
        CapturedHeads(name, *_list_layers(capture), capture.labels)
        for name, capture in zip(names, (first, second), strict=True)
    ]
    return _compare(*models, same_layer=same_layer)


def compare_snapshots(first: Run, second: Run, *, same_layer: bool = False) -> ModelComparison:
    """Match the heads of two runs by the stored maps of their last snapshots.

    TargetError if a run has no maps, or if the probes are different.
    """
    return _compare(
        _read_snapshot(first), _read_snapshot(second), same_layer=same_layer, is_8_bit=True
    )


def _describe_capture(capture: ModelCapture) -> CapturedHeads:
    layers, roles = _list_layers(capture.result)
    return CapturedHeads(
        capture.subject.name,
        layers,
        roles,
        capture.input.labels,
        capture.input.description,
        [
            *capture.notes,
            *(f"not measured: {path}: {why}" for path, why in capture.result.refusals.items()),
        ],
    )


def _list_layers(capture: Capture) -> tuple[list[LayerMaps], np.ndarray]:
    """Maps of all layers that have weights of a distribution, and the roles of all heads."""
    layers = []
    for number, (name, call) in enumerate(zip(capture.layer_names(), capture, strict=True)):
        attention = call.attention
        if attention is None or attention.is_signed:
            continue
        maps = call.maps(positions=MAX_MAP_POSITIONS)
        is_valid = np.ones(maps.shape[::2], bool)
        valid = attention.valid_queries()
        if valid is not None:
            is_valid = valid[:, : maps.shape[2]].cpu().numpy()
        examples, queries = np.nonzero(is_valid)
        weights = maps.transpose(1, 0, 2, 3)[:, examples, queries]
        is_known = attention.known_positions == "queries_and_keys"
        positions = attention.query_positions().cpu().numpy()[queries] if is_known else None
        axes = [capture.axis_labels(number, example) for example in range(len(maps))]
        keys = maps.shape[3]
        query_labels = [axis.queries for axis in axes if axis.queries is not None]
        key_labels = [axis.keys for axis in axes if axis.keys is not None]
        query_texts = key_texts = None
        if len(query_labels) == len(axes):
            query_texts = [query_labels[e][q] for e, q in zip(examples, queries, strict=True)]
        if len(key_labels) == len(axes):
            key_texts = [key_labels[example][:keys] for example in examples]
        extra = np.zeros(weights.shape[:2])
        if attention.extra_keys:
            extra = np.clip(1 - weights.sum(axis=2), 0, 1)
        layers.append(LayerMaps(number, name, weights, extra, positions, query_texts, key_texts))
    return layers, find_capture_roles(capture)


def _read_snapshot(run: Run) -> CapturedHeads:
    """The maps of the last snapshot, of the first probe example."""
    steps = run.map_steps()
    if not steps:
        raise TargetError(
            f"{run.name} has no maps, so its heads cannot be compared; give --probe TEXT to run "
            "its checkpoint, or train with `tracking.maps_every`"
        )
    labels = run.metadata("probe/labels")
    axis_labels = run.metadata("attention/axis_labels") or {}
    layers, notes = [], []
    with add_map_location(run.path, steps[-1]):
        encoded = run.maps(steps[-1])
        for number, name in enumerate(run.metadata("attention/layers") or ()):
            if name not in encoded:
                continue
            if is_signed_map(encoded[name]):
                notes.append(f"{run.name}, {name}: signed weights are no distribution; left out")
                continue
            weights = decode_real_rows(encoded[name])
            _, queries, keys = weights.shape
            axes = axis_labels.get(name)
            query_texts, key_texts = _label_stored(axes, labels, queries, keys)
            layers.append(
                LayerMaps(
                    number,
                    name,
                    weights,
                    np.zeros(weights.shape[:2]),
                    np.arange(keys - queries, keys) if query_texts or not labels else None,
                    query_texts,
                    key_texts,
                )
            )
    try:
        roles = assign_head_roles(find_head_roles(run))
    except MissingDataError:
        roles = np.full((0, 0), "", dtype=object)
    return CapturedHeads(
        run.name, layers, roles, labels, f"probe of the runs, step {steps[-1]:,}", notes
    )


def _label_stored(
    axes: dict[str, list[str]] | None, labels: list[list[str]] | None, queries: int, keys: int
) -> tuple[list[str] | None, list[list[str]] | None]:
    """Tokens of the queries, and of the keys of each row, of a stored map."""
    if axes is not None:
        query_labels, key_labels = axes["queries"] or None, axes["keys"] or None
    elif labels and len(labels[0]) >= keys:
        key_labels = labels[0][:keys]
        query_labels = key_labels[keys - queries :] if queries <= keys else None
    else:
        return None, None
    if query_labels is not None:
        query_labels = query_labels[:queries] if len(query_labels) >= queries else None
    if key_labels is not None and len(key_labels) < keys:
        key_labels = None
    return query_labels, None if key_labels is None else [key_labels[:keys]] * queries


def _compare(
    first: CapturedHeads, second: CapturedHeads, *, same_layer: bool, is_8_bit: bool = False
) -> ModelComparison:
    _check_tokens(first, second)
    notes = list(dict.fromkeys([*first.notes, *second.notes]))
    groups: dict[tuple[Any, ...], tuple[list[LayerMaps], list[LayerMaps]]] = {}
    for side, model in enumerate((first, second)):
        if not model.layers:
            raise TargetError(f"{model.name} has no attention weights that can be compared")
        for layer in model.layers:
            groups.setdefault(layer.group, ([], []))[side].append(layer)
    matchings = []
    for group in groups.values():
        if not all(group):
            names = ", ".join(layer.name for layers in group for layer in layers)
            notes.append(f"no layer of the other model has the queries and keys of {names}")
            continue
        try:
            matchings.append(
                _match_group(first, second, *group, same_layer=same_layer, is_8_bit=is_8_bit)
            )
        except MatchingError as error:
            raise TargetError(f"{first.name} and {second.name}: {error}") from None
    if not matchings:
        shapes = [
            f"{layer.weights.shape[1]} × {layer.weights.shape[2]}"
            for model in (first, second)
            for layer in model.layers[:1]
        ]
        raise TargetError(
            f"the maps of {first.name} and {second.name} have different queries and keys "
            f"({shapes[0]} and {shapes[1]}): heads are compared on the same tokens"
        )
    rows = max(matching.compared_rows for matching in matchings)
    if rows < MIN_FIRM_ROWS:
        notes.append(f"only {rows} queries were compared: a longer probe gives firmer verdicts")
    return ModelComparison(first, second, matchings, notes)


def _match_group(
    first: CapturedHeads,
    second: CapturedHeads,
    first_layers: list[LayerMaps],
    second_layers: list[LayerMaps],
    *,
    same_layer: bool,
    is_8_bit: bool,
) -> HeadMatching:
    has_extra = any(layer.extra_mass.any() for layer in (*first_layers, *second_layers))
    models, roles = [], []
    for model, layers in ((first, first_layers), (second, second_layers)):
        maps = [
            np.concatenate([layer.weights, layer.extra_mass[..., None]], axis=2)
            if has_extra
            else layer.weights
            for layer in layers
        ]
        heads = ModelHeads.from_layers(maps, [layer.number for layer in layers])
        models.append(heads)
        roles.append(
            [
                model.find_role(int(layer), int(head))
                for layer, head in zip(heads.layers, heads.heads, strict=True)
            ]
        )
    layer = first_layers[0]
    visible = (models[0].maps.max(axis=0) > 0) | (models[1].maps.max(axis=0) > 0)
    patterns = build_patterns(visible, layer.positions, layer.query_texts, layer.key_texts)
    keys = visible.shape[1]
    return match_heads(
        models[0],
        models[1],
        patterns,
        roles=(roles[0], roles[1]),
        same_layer=same_layer,
        resolution=RESOLUTION_PER_KEY_8_BITS * keys if is_8_bit else DEFAULT_RESOLUTION,
    )


def _check_tokens(first: CapturedHeads, second: CapturedHeads) -> None:
    """Raise TargetError if the models read different tokens."""
    if first.tokens == second.tokens:
        return
    if first.tokens is None or second.tokens is None:
        model = first if first.tokens is None else second
        raise TargetError(
            f"{model.name} has no token labels, so it is not known whether both models read the "
            "same input; give both the same tokens with --ids"
        )
    if len(first.tokens) != len(second.tokens):
        raise TargetError(
            f"{first.name} read {len(first.tokens)} examples and {second.name} "
            f"{len(second.tokens)}: the probes must be equal"
        )
    for a, b in zip(first.tokens, second.tokens, strict=True):
        if a == b:
            continue
        place = next(
            (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
        )
        texts = [repr(tokens[place]) if place < len(tokens) else "the end" for tokens in (a, b)]
        raise TargetError(
            f"{first.name} and {second.name} read different tokens: {len(a)} and {len(b)}, and "
            f"position {place} is {texts[0]} and {texts[1]}. Heads are compared token by token: "
            "give a text that both tokenizers split alike, or token ids with --ids"
        )
