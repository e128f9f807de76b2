"""Squared Hellinger distances of all pairs of heads."""

import numpy as np
import pytest
import torch

from neural.modules.mask import Mask
from neural.tracking.head_divergence import head_divergence
from neural.tracking.look import Look
from tests.tracking.looks import look_of


def by_loops(looks):
    """The definition, row by row."""
    maps = [look.maps() for look in looks]
    heads = [(maps[layer].weights[:, h], maps[layer].visible[:, h]) for layer in range(len(looks)) for h in range(3)]
    counted = looks[0].counted()
    found = np.zeros((len(heads), len(heads)))
    for i, (one, seen) in enumerate(heads):
        for j, (other, seen_too) in enumerate(heads):
            rows = [
                (b, row) for b in range(one.shape[0]) for row in range(one.shape[1])
                if min(seen[b, row], seen_too[b, row]) > 1 and (counted is None or counted[b, row])
            ]
            found[i, j] = np.mean([1 - (one[place] * other[place]).sqrt().sum().item() for place in rows])
    return found


@pytest.mark.parametrize("kind", ["none", "causal", "causal keys", "causal window", "segments"])
def test_all_pairs_are_those_of_the_definition(kind):
    looks = [look_of(kind, queries=53), look_of(kind, queries=53, seed=1)]
    np.testing.assert_allclose(head_divergence(looks), by_loops(looks), atol=2e-5)


def test_a_head_is_no_distance_from_itself_and_at_most_one_from_another():
    q, k = 100 * torch.eye(4)[None, None], torch.eye(4)[None, None]
    other = torch.roll(k, 1, dims=2)
    found = head_divergence([Look(q, k, Mask(), scale=1.0), Look(q, other, Mask(), scale=1.0)])
    np.testing.assert_allclose(found, [[0, 1], [1, 0]], atol=1e-5)


def test_layers_of_other_lengths_or_without_values_are_not_compared():
    short = look_of("causal", queries=29)
    assert head_divergence([look_of("causal", queries=53), short]) is None
    assert head_divergence([short, None]) is None
    assert head_divergence([]) is None
