"""Squared Hellinger distances of all pairs of heads."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from neural.capture.attention_call import AttentionCall
from neural.capture.head_divergence import compute_head_divergence
from neural.native.library import available_levels, force_level
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.mask import Mask
from tests.capture.attention_calls import make_call


def compute_by_loops(calls):
    """The definition, row by row."""
    maps = [call.compute_maps() for call in calls]
    heads = [(own.weights[:, h], own.visible_count[:, h]) for own in maps for h in range(3)]
    valid = calls[0].valid_queries()
    distances = np.zeros((len(heads), len(heads)))
    for i, (p, p_visible) in enumerate(heads):
        for j, (q, q_visible) in enumerate(heads):
            rows = [
                (b, row)
                for b in range(p.shape[0])
                for row in range(p.shape[1])
                if min(p_visible[b, row], q_visible[b, row]) > 1
                and (valid is None or valid[b, row])
            ]
            distances[i, j] = np.mean([1 - (p[row] * q[row]).sqrt().sum().item() for row in rows])
    return distances


KINDS = ["none", "causal", "causal keys", "causal window", "segments", "pairs", "extra bias keys"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_pairs_equal_the_definition(kind):
    calls = [make_call(kind, queries=53), make_call(kind, queries=53, seed=1)]
    expected = compute_by_loops(calls)
    np.testing.assert_allclose(compute_head_divergence(calls), expected, atol=2e-5)
    with no_kernels():
        np.testing.assert_allclose(compute_head_divergence(calls), expected, atol=2e-5)


@pytest.mark.parametrize("level", available_levels())
def test_layers_with_different_masks_and_grouped_heads_give_the_same_at_every_level(level):
    window = make_call("causal window", queries=53)
    grouped = replace(window, k=window.k[:, :1], mask=Mask(causal=True))
    with no_kernels():
        expected = compute_head_divergence([window, grouped])
    with force_level(level):
        np.testing.assert_allclose(compute_head_divergence([window, grouped]), expected, atol=2e-5)


def test_a_head_has_distance_0_to_itself_and_at_most_1_to_another():
    q, k = 100 * torch.eye(4)[None, None], torch.eye(4)[None, None]
    other = torch.roll(k, 1, dims=2)
    distances = compute_head_divergence(
        [AttentionCall(q, k, Mask(), scale=1.0), AttentionCall(q, other, Mask(), scale=1.0)]
    )
    np.testing.assert_allclose(distances, [[0, 1], [1, 0]], atol=1e-5)


def test_layers_of_different_lengths_or_without_values_are_not_compared():
    short = make_call("causal", queries=29)
    assert compute_head_divergence([make_call("causal", queries=53), short]) is None
    assert compute_head_divergence([short, None]) is None
    assert compute_head_divergence([]) is None
