"""What a watch has seen: the calls of attention in their order, and what can be said about them.

    seen[0].path                  "transformer_encoder.0.attention.part"
    seen[0].measures["entropy"]   per head, (H,)
    seen[0].maps()                the weights themselves, (B, H, Q, K)
    seen.arrays()                 measure → (layer, head)
    seen.between()                measure of two layers → (layer, layer)

Weights are those without dropout, in 32 bits. Nothing is computed before it is asked for, and nothing twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, overload

import numpy as np

from neural.modules.attention.self import Self
from neural.modules.compiled import plain_torch
from neural.modules.late import torch
from neural.modules.mask import Mask
from neural.tracking.head_divergence import head_divergence
from neural.tracking.look import Look, exactly
from neural.tracking.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure
from neural.tracking.measures import registry
from neural.tracking.statistics import applies, averaged, measured
from neural.tracking.written import Written

if TYPE_CHECKING:
    from jaxtyping import Float

ALL_PAIRS = 12
"""Layers up to which each is compared with each; of more, each with the next."""


@dataclass(frozen=True)
class Call:
    """One attention, called once."""

    path: str
    """The module it happened in, as `model.get_submodule` takes it."""
    heads: int
    look: Look | None
    """None where queries or keys were not finite: then there is nothing to measure."""
    wanted: tuple[str, ...] | None = None
    """Measures; all that apply unless given."""
    note: str = ""
    """Why measures of positions are left out; empty if they are not."""

    @cached_property
    def measures(self) -> dict[str, Float[np.ndarray, " H"]]:
        """Of every head; one number for measures of all heads together. NaN where no row counts."""
        names = [name for name in _chosen(self.wanted, HeadMeasure | LayerMeasure) if self._applies(registry.get(name))]
        if self.look is None:
            alone = [name for name in names if issubclass(registry.get(name), HeadMeasure)]
            return {name: np.full(self.heads if name in alone else (), np.nan, np.float32) for name in names}
        return {name: values.cpu().numpy() for name, values in averaged(self._rows(names)).items()}

    def _rows(self, names: Sequence[str]) -> dict[str, torch.Tensor]:
        """The values of every row, (B, H, Q) or (B, Q); kept until the call is forgotten."""
        assert self.look is not None
        found = self.__dict__.setdefault("_rows_found", {})
        missing = [name for name in names if name not in found]
        if missing:
            found |= _measured(missing, self.look)
        return {name: found[name] for name in names}

    def halves(self) -> dict[str, Float[np.ndarray, "2 H"]]:
        """Every measure on every other example, from the first on and from the second: how much of it is chance.

        Empty where there is one example.
        """
        if self.look is None or self.look.batch < 2:
            return {}
        rows = self._rows(list(self.measures))
        both = [averaged({name: values[start::2] for name, values in rows.items()}) for start in (0, 1)]
        return {name: np.stack([half[name].cpu().numpy() for half in both]) for name in rows}

    def _applies(self, measure: type[Measure]) -> bool:
        if self.look is None:
            return not {"induction", "extra"} & set(measure.needs)
        return applies(measure, self.look)

    def maps(self, examples: int | None = None, positions: int | None = None) -> Float[np.ndarray, "B H Q K"]:
        """The weights written out; of the first few examples, queries and keys alone where their number is given.

        One column for every key that is a position. With other keys (a learned sink), a row sums to
        1 minus their share; the measure `extra_key_mass` is its mean.
        """
        look = self.look
        if look is None:
            raise ValueError(f"`{self.path}` has queries or keys that are not finite: there are no weights to show")
        batch, queries, keys = min(examples or look.batch, look.batch), look.queries, look.positions
        queries, keys = min(positions or queries, queries), min(positions or keys, keys)
        found = np.empty((batch, look.heads, queries, keys), np.float32)
        with exactly(look.q.device):
            for part in look.parts(heads=look.heads):
                if part.batch.start < batch and part.rows.start < queries:
                    into = found[part]   # a view: the last part may be longer than what is wanted of it
                    into[:] = look.maps(part).weights[: len(into), :, : into.shape[2], :keys].cpu().numpy()
        return found


class Seen(Sequence[Call]):
    """Every call of attention, in the order in which they happened."""

    def __init__(self, wanted: Iterable[str] | None = None) -> None:
        """`wanted` are measures, of one layer and of two; all that apply unless given."""
        self.wanted = None if wanted is None else tuple(wanted)
        for name in self.wanted or ():
            registry.get(name)   # a name that does not exist is said here, with what was meant
        self.calls: list[Call] = []
        self.refused: dict[str, str] = {}
        """Modules whose attention ran and is not measured: path → reason."""

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        return self.calls[index]

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def layers(self) -> list[str]:
        """A name for each call: its path, and which time it is where a module was called before."""
        found: list[str] = []
        times = Counter[str]()
        for call in self.calls:
            times[call.path] += 1
            found.append(call.path if times[call.path] == 1 else f"{call.path}#{times[call.path]}")
        return found

    def arrays(self) -> dict[str, Float[np.ndarray, "layer head"]]:
        """Every measure as (layer, head), or (layer,); NaN where a layer has fewer heads or no such measure."""
        most, found = max((call.heads for call in self.calls), default=0), {}
        for index, call in enumerate(self.calls):
            for name, values in call.measures.items():
                shape = (len(self), most) if values.ndim else (len(self),)
                into = found.setdefault(name, np.full(shape, np.nan, np.float32))
                into[(index, slice(len(values))) if values.ndim else index] = values
        return found

    def halves(self) -> dict[str, Float[np.ndarray, " 2"]]:
        """The mean of every measure over all heads, on two halves of the examples; also of those of two layers."""
        found: dict[str, list[np.ndarray]] = {}
        for call in self.calls:
            for name, values in call.halves().items():
                found.setdefault(name, []).append(values.reshape(2, -1))
        for name, pairs in self._pairs.items():
            for rows in pairs.values():
                if rows.shape[0] > 1:
                    both = [averaged({name: rows[start::2]})[name] for start in (0, 1)]
                    found.setdefault(name, []).append(np.stack([half.cpu().numpy() for half in both]))
        means = {name: mean_of(np.concatenate(values, axis=1)) for name, values in found.items()}
        return {name: values for name, values in means.items() if np.isfinite(values).all()}

    def head_divergence(self) -> Float[np.ndarray, "N N"] | None:
        """How differently every two heads look, layer after layer; None where layers cannot be compared."""
        return head_divergence([call.look for call in self.calls])

    @cached_property
    def _pairs(self) -> dict[str, dict[tuple[int, int], torch.Tensor]]:
        """Rows (B, H, Q) of the measures of two layers, pair by pair."""
        names = _chosen(self.wanted, PairMeasure)
        found: dict[str, dict[tuple[int, int], torch.Tensor]] = {name: {} for name in names}
        every = range(len(self))
        for i, j in (combinations(every, 2) if len(self) <= ALL_PAIRS else pairwise(every)) if names else ():
            pair = _together(self.calls[i].look, self.calls[j].look)
            for name, rows in _measured(names, *pair).items() if pair else ():
                found[name][i, j] = rows
        return found

    def between(self) -> dict[str, Float[np.ndarray, "layer layer"]]:
        """Measures of two layers, averaged over the heads: [i, j] compares layer i with a later layer j.

        NaN elsewhere, and for two that do not fit: other heads, other lengths. Each with the next where there are many.
        """
        found = {}
        for name, pairs in self._pairs.items():
            found[name] = np.full((len(self), len(self)), np.nan, np.float32)
            for place, rows in pairs.items():
                found[name][place] = averaged({name: rows})[name].nanmean()
        return found


def mean_of(values: Float[np.ndarray, "2 N"]) -> Float[np.ndarray, " 2"]:
    """Over the heads that have a value in both halves."""
    both = np.isfinite(values).all(axis=0)
    return values[:, both].mean(axis=1) if both.any() else np.full(2, np.nan, np.float32)


def _chosen(wanted: tuple[str, ...] | None, kind: type) -> list[str]:
    return [name for name in (registry.names() if wanted is None else wanted) if issubclass(registry.get(name), kind)]


def _measured(names: Sequence[str], *looks: Look) -> dict[str, torch.Tensor]:
    """By the compiled loops, unless the weights come from elsewhere than queries and keys."""
    with nullcontext() if all(type(look) is Look for look in looks) else plain_torch():
        return measured(names, *looks)


def _together(one: Look | None, other: Look | None) -> tuple[Look, Look] | None:
    """Two looks that can be compared, or nothing; what both share is the same object, as the compiled loops want it."""
    if one is None or other is None or _size(one) != _size(other):
        return None
    if isinstance(other, Written) and type(one) is Look and one.scale is None and one.k.shape[1] == one.heads:
        same = {field.name: getattr(one, field.name) for field in fields(Look)}
        one = Written(**same, mechanism=Self())   # in the same large parts as the other one
    return one, replace(other, mask=one.mask) if _alike(one.mask, other.mask) else other


def _size(look: Look) -> tuple[int, ...]:
    return *look.q.shape[:3], look.keys, look.extra_keys


def _alike(one: Mask, other: Mask) -> bool:
    for field in fields(Mask):
        mine, its = getattr(one, field.name), getattr(other, field.name)
        both = torch.is_tensor(mine) and torch.is_tensor(its)
        if not (mine is its or (torch.equal(mine, its) if both else mine == its)):
            return False
    return True
