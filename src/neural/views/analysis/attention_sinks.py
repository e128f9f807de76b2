"""Attention that rests on the first key (Xiao et al., 2024): what a head does when it has nothing to do."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.heads import BORDERS, Role, last_maps, named
from neural.views.reading import Missing, mean, measure


class AttentionSinks(Diagnosis):
    """Share of heads with half of their mass or more on the first key at the end, beyond what a uniform head has."""

    code: ClassVar[str] = "ATT002"
    claim: ClassVar[str] = "heads rest on the first key, an attention sink"
    unit: ClassVar[str] = "of the heads"
    advice: ClassVar[str] = "read spans and entropies of these heads without the first key; they say little with it"

    def symptom(self, run: Run) -> Symptom | None:
        """By the mass on the first key, and by what is left without it where maps are kept."""
        role = Role("sink", *measure(run, "sink_excess"))
        last = role.now
        sinks = last >= BORDERS["sink"]
        if not sinks.any():
            return None
        first = min(role.since(*place) for place in np.argwhere(sinks).tolist())
        evidence = f"{named(sinks, last)}; the first of them since step {first:,}"
        return Symptom(float(sinks.sum() / np.isfinite(last).sum()), evidence + _without(run, sinks))


def _without(run: Run, sinks: np.ndarray) -> str:
    """Entropy of these heads with the first key and without it, in nats."""
    try:
        step, layers = last_maps(run)
    except Missing:
        return ""
    both = []
    for number, maps in enumerate(layers[: len(sinks)]):
        for head in np.flatnonzero(sinks[number, : len(maps)]):
            rows = maps[head][2:]   # those that see two other keys
            rest = rows[:, 1:]
            both.append((_entropy(rows), _entropy(rest)))
    found = mean(np.array(both), axis=0) if both else np.full(2, np.nan)
    if not np.isfinite(found).all():
        return ""
    return f"; at step {step:,} their entropy is {found[0]:.2f} nats with it and {found[1]:.2f} without"


def _entropy(rows: np.ndarray) -> float:
    total = rows.sum(axis=1, keepdims=True)
    share = rows / np.where(total > 0, total, np.nan)
    each = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1)
    return float(mean(each))
