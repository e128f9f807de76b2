"""What the heads of a run do: which role each has come to play, and how much it writes.

A role is a score from 0 to 1 for every snapshot, layer and head, and a border from which a head is said to have it: by
the level that the score ends at, not by its last value, which noise may lift over the border (views/levels.py). Four
come from the measures, at every look; three from the maps, at those looks that kept them, of the first example:

    uniform          entropy over what a uniform head would have
    sink             mass on the first key, beyond what a uniform head has there
    previous token   mass on the key before the query
    induction        mass on what followed the same token the last time
    positional       mass at one distance, the same for all queries, whichever gets most
    local            mass within 3 positions, beyond what a uniform head has there
    delimiter        mass on blanks, punctuation and marks such as [SEP], beyond what a uniform head has there
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neural.tracking.quantised import maps_from, unpack
from neural.tracking.run import Run
from neural.views.levels import last_level, onset
from neural.views.reading import Missing, measure

MEASURED = {"uniform": "relative_entropy", "sink": "sink_excess", "previous token": "previous_token_mass",
            "induction": "induction_mass"}  # fmt: skip
BORDERS = {"uniform": 0.95, "sink": 0.5, "previous token": 0.5, "induction": 0.4, "positional": 0.5, "local": 0.8,
           "delimiter": 0.5}  # fmt: skip
"""Scores from which a head has the role; where it has several, the one that it passes by most counts."""
NEAR = 3
"""Positions that are local."""


@dataclass(frozen=True, eq=False)
class Role:
    """How much every head plays one role, look by look."""

    name: str
    steps: np.ndarray
    scores: np.ndarray
    """[step, layer, head]; NaN where a layer has fewer heads."""

    @cached_property
    def now(self) -> np.ndarray:
        """The level that each head ends at, [layer, head]."""
        shape = self.scores.shape[1:]
        levels = [_last_level(self.scores[:, *place]) for place in np.ndindex(*shape)]
        return np.array(levels, dtype=float).reshape(shape)

    def since(self, layer: int, head: int) -> int:
        """The step since which a head that has the role has had it."""
        scores = self.scores[:, layer, head]
        finite = np.isfinite(scores)
        return int(self.steps[finite][onset(scores[finite], BORDERS[self.name]) or 0])


def _last_level(scores: np.ndarray) -> float:
    """Of a head; NaN where it has no score."""
    finite = scores[np.isfinite(scores)]
    return last_level(finite) if len(finite) else math.nan


def roles(run: Run) -> dict[str, Role]:
    """All roles that the run can tell of; Missing where it never looked at its attention."""
    there, found = set(run.measures()), {}
    for name, source in MEASURED.items():
        if source in there:
            found[name] = Role(name, *measure(run, source))
    found |= _by_maps(run)
    if not found:
        raise Missing(f"{run.name} has no measure `relative_entropy` and no maps; see `tracking`")
    return found


def chief(found: dict[str, Role]) -> np.ndarray:
    """The role of every head at the last look, [layer, head]; "mixed" where it has none, "" where there is no head."""
    shape = np.max([one.now.shape for one in found.values()], axis=0)
    best, names = np.full(shape, -np.inf), np.full(shape, "mixed", dtype=object)
    there = np.zeros(shape, bool)
    for name, role in found.items():
        layers, heads = role.now.shape
        score = np.where(np.isfinite(role.now), role.now, -np.inf) / BORDERS[name]
        place = np.s_[:layers, :heads]
        there[place] |= np.isfinite(role.now)
        wins = (score >= 1) & (score > best[place])
        names[place][wins], best[place][wins] = name, score[wins]
    names[~there] = ""
    return names


def maps_of(run: Run, step: int) -> list[np.ndarray]:
    """The maps [head, query, key] of the first example, layer by layer as the run names them."""
    packed = run.maps(step)
    with maps_from(run.path, step):
        return [unpack(packed[name]) for name in run.described("attention/layers") or () if name in packed]


def last_maps(run: Run) -> tuple[int, list[np.ndarray]]:
    """The newest maps and their step; Missing where none are kept."""
    steps = run.map_steps()
    if not steps:
        raise Missing(f"{run.name} has no maps; see `tracking.maps_every`")
    return steps[-1], maps_of(run, steps[-1])


def head_name(layer: int, head: int) -> str:
    """As everywhere: `L2 h3`."""
    return f"L{layer} h{head}"


def named(chosen: np.ndarray, values: np.ndarray | None = None, most: int = 8) -> str:
    """The chosen heads of [layer, head], with their values where given, the first few of them."""
    places = [tuple(map(int, place)) for place in np.argwhere(chosen)]
    shown = [head_name(*place) + ("" if values is None else f" ({values[place]:.2f})") for place in places[:most]]
    return ", ".join(shown) + (f" and {len(places) - most} more" if len(places) > most else "")


def writing(run: Run) -> dict[int, np.ndarray]:
    """How much each head can write into its layer's output, by the saved weights: ‖output·value‖, layer → [head].

    Of layers whose weights are named as those of this laboratory's networks; the best checkpoint's.
    """
    saved = run.restore("best") or run.restore()
    if saved is None:
        raise Missing(f"{run.name} has no checkpoint")
    found: dict[int, np.ndarray] = {}
    layers, heads = run.described("attention/layers") or [], run.described("attention/heads") or []
    for number, (path, count) in enumerate(zip(layers, heads, strict=True)):
        for start in ("average", "model"):   # what the best score was measured with, where weights are averaged
            names = [f"{start}.{path}.{part}.weight" for part in ("output", "value")]
            if all(name in saved.tensors for name in names):
                output, value = (saved.tensors[name].float().numpy() for name in names)
                found[number] = _norms(output, value, count)
                break
    if not found:
        raise Missing(f"{run.name} has no weights that are called `output` and `value`")
    return found


def _norms(output: np.ndarray, value: np.ndarray, heads: int) -> np.ndarray:
    width = output.shape[1] // heads
    group = output.shape[1] // value.shape[0]   # query heads that share a value head
    return np.array([
        np.linalg.norm(output[:, h * width : (h + 1) * width] @ value[h // group * width : (h // group + 1) * width])
        for h in range(heads)
    ])  # fmt: skip


def _by_maps(run: Run) -> dict[str, Role]:
    steps = run.map_steps()
    said = run.described("probe/labels")
    labels = said[0] if said else None
    scores: dict[str, list[list[np.ndarray]]] = {}
    for step in steps:
        layers = [dict(_scores(maps, labels)) for maps in maps_of(run, step)]
        for name in layers[0] if layers else ():
            scores.setdefault(name, []).append([one.get(name, np.full(1, np.nan)) for one in layers])
    return {name: Role(name, np.array(steps[-len(looks) :]), _stacked(looks)) for name, looks in scores.items()}


def _scores(maps: np.ndarray, labels: list[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """Of one layer, [head] each."""
    _, queries, keys = maps.shape
    distance = np.arange(keys) - np.arange(keys - queries, keys)[:, None]
    seen = maps.max(axis=0) > 0   # a weight that rounds to 0 in all heads counts as hidden
    rows = seen.sum(axis=1) > 1
    if not rows.any():
        return
    yield "positional", _at_one_distance(maps[:, rows], distance[rows], seen[rows])
    yield "local", _beyond(maps[:, rows], (np.abs(distance) <= NEAR)[rows], seen[rows])
    if labels is not None and len(labels) >= keys:
        marks = np.array([_delimits(one) for one in labels[:keys]])
        if marks.any() and not marks.all():
            yield "delimiter", _beyond(maps[:, rows], np.broadcast_to(marks, seen.shape)[rows], seen[rows])


def _at_one_distance(maps: np.ndarray, distance: np.ndarray, seen: np.ndarray) -> np.ndarray:
    far = (distance - distance.min())[seen]
    count = np.bincount(far)
    most = count >= len(distance) / 2   # distances that most queries can look at
    if not most.any():
        return np.zeros(len(maps))
    return np.array([(np.bincount(far, one[seen])[most] / count[most]).max() for one in maps])


def _beyond(maps: np.ndarray, wanted: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Mass on what is wanted: 0 is as if a head looked at all that it sees alike, 1 is at nothing else."""
    usual = (wanted & seen).sum(axis=1) / seen.sum(axis=1)
    ask = usual < 1   # rows that see anything else
    if not ask.any():
        return np.full(len(maps), np.nan)
    mass = (maps * wanted).sum(axis=2)[:, ask].mean(axis=1)
    expected = usual[ask].mean()
    return np.clip((mass - expected) / (1 - expected), 0, 1)


def _delimits(label: str) -> bool:
    special = len(label) > 2 and (label[0] + label[-1]) in ("[]", "<>")
    return special or (bool(label) and not any(one.isalnum() for one in label))


def _stacked(looks: list[list[np.ndarray]]) -> np.ndarray:
    heads = max(len(layer) for look in looks for layer in look)
    full = np.full((len(looks), max(map(len, looks)), heads), np.nan)
    for at, look in enumerate(looks):
        for number, layer in enumerate(look):
            full[at, number, : len(layer)] = layer
    return full
