"""The maps of a run, small enough for one file: all of them where they fit, else rounder ones, else coarser ones.

A rounder map has fewer levels on the square-root scale: 128 (no weight is off by more than 0.008), then 64 (0.016). A
coarser one has a cell for a few queries and keys: the mean over its queries of the weight on its keys together, so
rows still sum to 1. The last step keeps every weight as it was, where that takes no more than a third of the room.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np

from neural.tracking.quantised import HEADER, maps_from, pack, unpack
from neural.tracking.run import Run
from neural.views.report_data import packed_step, step_maps

ROOM = 3_200_000
"""Bytes for all maps of a run, before base64 makes 4 of 3."""
STOPS = 200
"""Steps with maps, at most."""
HOPELESS = 1.5
"""Times too large: a step in the middle tells before all are tried. Those of other steps are not twice as large."""
LEAST = 1000
"""Bytes of a step that is not worth making smaller."""
LEVELS = (127, 63)
"""Of rounder maps, 0 not counted; coarser ones have the fewest."""


class Fitted(NamedTuple):
    """Maps by step, as `report_data.packed_step` packs them."""

    steps: dict[int, bytes]
    pooled: dict[int, int]
    """Positions that a cell stands for, where more than one."""
    remarks: list[str]
    """What was left out, in words."""


def fitted(run: Run, room: int = ROOM) -> Fitted:
    """The maps of a run in at most about so many bytes."""
    every = run.map_steps()
    kept = every if len(every) <= STOPS else [every[at] for at in np.linspace(0, len(every) - 1, STOPS).astype(int)]
    remarks = [] if kept == every else [f"maps of {len(kept)} of {len(every)} steps, evenly chosen"]
    whole = {step: step_maps(run, step) for step in kept}
    if _size(whole) <= room:
        return Fitted(whole, {}, remarks)
    last = kept[-1]
    alone = {last: whole.pop(last)} if len(whole[last]) <= room / 3 else {}
    factor, levels, smaller, left = 1, 0, whole, room - _size(alone)
    for factor, levels in _ladder():
        sample = len(_smaller(run, kept[len(kept) // 2], factor, levels))
        if sample * len(whole) > HOPELESS * left and sample >= LEAST:
            continue
        smaller = {step: _smaller(run, step, factor, levels) for step in whole}
        if _size(smaller) <= left or all(len(one) < LEAST for one in smaller.values()):
            break
    how = f"a cell of a map stands for {factor} × {factor} positions" if factor > 1 else \
          f"weights are off by up to {1 / levels:.3f}"  # fmt: skip
    but = f", but for the last step ({last:,})" if alone else ""
    remarks.append(f"to keep this file small, {how}{but}; the run folder has every weight")
    return Fitted({**smaller, **alone}, dict.fromkeys(smaller, factor) if factor > 1 else {}, remarks)


def smaller_map(packed: bytes, factor: int, levels: int) -> bytes:
    """A map with a cell for every `factor` × `factor` weights, rounded to so many levels above 0."""
    _, _, _, queries, keys, causal, first = HEADER.unpack_from(packed)
    weights = unpack(packed)
    if factor > 1:
        rows, columns = np.arange(0, queries, factor), np.arange(0, keys, factor)
        sums = np.add.reduceat(np.add.reduceat(weights, columns, axis=2), rows, axis=1)
        weights = sums / np.diff([*rows, queries])[:, None]
    rounded = np.square(np.rint(np.sqrt(weights) * levels) / levels)
    return pack(rounded, causal=bool(causal), first=-(-first // factor))


def _ladder() -> Iterator[tuple[int, int]]:
    """Factors and levels, each smaller than the one before."""
    yield from ((1, levels) for levels in LEVELS)
    yield from ((factor, LEVELS[-1]) for factor in count(2))


def _smaller(run: Run, step: int, factor: int, levels: int) -> bytes:
    found = run.maps(step)   # further examples of the probe stay in the folder
    layers = [name for name in run.described("attention/layers") or [] if name in found]
    with maps_from(run.path, step):
        return packed_step({name: smaller_map(found[name], factor, levels) for name in layers})


def _size(steps: dict[int, bytes]) -> int:
    return sum(map(len, steps.values()))
