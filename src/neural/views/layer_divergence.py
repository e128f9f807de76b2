"""How differently layers look, whatever the order of their heads.

Two layers are compared by their heads: every head of one is matched with a head of the other so that all are as alike
as can be (an optimal assignment), and the divergence is the mean over the matched pairs. From that is taken what two
random groups of the same heads would differ by. So 0 means that the layers hold the same kinds of heads, in whatever
order, and a layer that differs does so by more than heads of one layer differ among themselves; below 0 they are more
alike than that. In squared Hellinger distance, as `heads/divergence` of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from neural.tracking.recorded import HEAD_DIVERGENCE
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.views.reading import Missing, mean

GROUPINGS = 32
"""Random groups of the heads of two layers that their divergence is compared with."""


def matched(divergence: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Mean divergence of two groups of heads, each matched with its likest under an optimal assignment."""
    block = divergence[np.ix_(first, second)]
    rows, columns = linear_sum_assignment(block)
    return float(block[rows, columns].mean())


def layer_excess(divergence: np.ndarray, heads: Sequence[int], *, seed: int = 0) -> np.ndarray:
    """[layer, layer]: matched divergence beyond that of random groups of the same heads.

    NaN on and below the diagonal, and for layers of one head: of two heads there is one way to make groups.
    """
    starts = np.concatenate([[0], np.cumsum(heads)])
    layers = [np.arange(starts[at], starts[at + 1]) for at in range(len(heads))]
    excess = np.full((len(heads), len(heads)), np.nan)
    for i in range(len(heads)):
        for j in range(i + 1, len(heads)):
            if min(len(layers[i]), len(layers[j])) > 1:
                usual = _of_random_groups(divergence, layers[i], layers[j], np.random.default_rng((seed, i, j)))
                excess[i, j] = matched(divergence, layers[i], layers[j]) - usual
    return excess


def _of_random_groups(
    divergence: np.ndarray, first: np.ndarray, second: np.ndarray, generator: np.random.Generator
) -> float:
    """The same of groups that mix the heads of both layers, as many of each layer as chance gives."""
    both, values = np.concatenate([first, second]), []
    while len(values) < GROUPINGS:
        shuffled = generator.permutation(both)
        group, rest = shuffled[: len(first)], shuffled[len(first) :]
        if set(group) not in (set(first), set(second)):   # not the layers themselves
            values.append(matched(divergence, group, rest))
    return float(np.mean(values))


def excess_curves(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Steps and [step, layer, layer] of `layer_excess`; Missing where a run has no comparison of its heads."""
    steps, values, heads = _comparable(run)
    return steps, np.stack([layer_excess(matrix, heads) for matrix in values])


def last_excess(run: Run) -> np.ndarray:
    """The same at the last step alone."""
    _, values, heads = _comparable(run)
    return layer_excess(values[-1], heads)


def _comparable(run: Run) -> tuple[np.ndarray, np.ndarray, list[int]]:
    steps, values, heads = _divergences(run)
    if len(heads) < 2 or min(heads) < 2:
        raise Missing(f"{run.name}: it takes two layers with two heads each to compare layers")
    return steps, values, heads


def matched_curves(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Steps and the divergence of every two layers, their heads matched, [step, layer, layer]."""
    steps, values, heads = _divergences(run)
    starts = np.concatenate([[0], np.cumsum(heads)])
    layers = [np.arange(starts[at], starts[at + 1]) for at in range(len(heads))]
    distances = np.full((len(steps), len(heads), len(heads)), np.nan)
    for row, matrix in zip(distances, values, strict=True):
        for i, j in combinations(range(len(heads)), 2):
            row[i, j] = matched(matrix, layers[i], layers[j])
    return steps, distances


def _divergences(run: Run) -> tuple[np.ndarray, np.ndarray, list[int]]:
    try:
        steps, values = run.measure(HEAD_DIVERGENCE)
    except RunError:
        raise Missing(f"{run.name} has no comparison of its heads; see `tracking`") from None
    heads = run.described("attention/heads") or []
    if not len(steps) or sum(heads) != values.shape[1]:
        raise Missing(f"{run.name}: its layers cannot be compared")
    return steps, values.astype(float), heads


def at_equal_distance(
    pairs: np.ndarray, one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]
) -> float:
    """Mean of `other` minus mean of `one`, pairs of layers as far apart in the network being compared with each other.

    Neighbouring layers are alike because they are neighbours: a group of close ones must not be compared with far ones.
    NaN where no distance occurs in both groups.
    """
    differences = []
    for distance in range(1, len(pairs)):
        near, far = ([pairs[i, j] for i, j in group if j - i == distance] for group in (one, other))
        if near and far:
            differences.append(float(mean(np.array(far)) - mean(np.array(near))))
    return float(mean(np.array(differences))) if differences else float("nan")
