"""Statistics of patching: restored shares, blocks of mismatched pairs, family-wise p-values."""

import math
from itertools import permutations

import numpy as np
import pytest

from neural.findings.patching_effects import (
    can_decide,
    compute_p_values,
    estimate_effects,
    find_weak_pairs,
    make_blocks,
)


def fill_changes(blocks, table):
    """`changes[i, k]` from a table [pair, source, unit] of all pairs."""
    changes = np.zeros((len(table), max(map(len, blocks)), table.shape[-1]))
    for block in blocks:
        for pair in block:
            changes[pair, : len(block)] = table[pair, block]
    return changes


def test_restored_shares_are_averaged_over_pairs():
    differences = np.array([2.0, -4.0, 1.0])
    shares = np.array([[0.5, 1.0], [0.1, 1.0], [0.3, 1.0]])
    effects = estimate_effects((shares * differences[:, None])[:, None], differences, None)
    assert effects.restored == pytest.approx([0.3, 1.0])
    assert effects.standard_error == pytest.approx([0.2 / math.sqrt(3), 0.0])
    assert effects.low[0] < 0.3 < effects.high[0]
    assert np.isnan(effects.low[1])  # equal values do not show how much they vary
    assert np.isnan(effects.p).all() and not effects.has_effect.any()


def test_pairs_with_a_small_or_missing_difference_are_weak():
    differences = np.array([2.0, -2.0, 0.05, 1.0, math.nan, 0.0])
    assert find_weak_pairs(differences).tolist() == [False, False, True, False, True, True]
    assert find_weak_pairs(np.array([math.nan])).tolist() == [True]


def test_blocks_have_pairs_of_one_length_only():
    lengths = [5, 7, 5, 5, 7, 9, 5, 5, 5, 5]
    blocks = make_blocks(lengths, max_size=4, seed=3)
    assert sorted(pair for block in blocks for pair in block) == list(range(10))
    assert all(len({lengths[pair] for pair in block}) == 1 for block in blocks)
    assert sorted(map(len, blocks)) == [1, 2, 3, 4]


def test_four_pairs_can_decide_and_three_cannot():
    assert can_decide(make_blocks([5] * 4))
    assert not can_decide(make_blocks([5] * 3))
    assert can_decide(make_blocks([5] * 3 + [6] * 3))  # 6 × 6 permutations


def test_p_values_are_those_of_all_permutations():
    random = np.random.default_rng(4)
    table = random.standard_normal((4, 4, 3))
    blocks = [np.arange(4)]
    statistic, p = compute_p_values(fill_changes(blocks, table), blocks)
    sums = np.array([sum(table[i, order[i]] for i in range(4)) for order in permutations(range(4))])
    z = (sums - sums.mean(axis=0)) / sums.std(axis=0)
    assert statistic == pytest.approx(z[0])
    largest = np.abs(z).max(axis=1)
    expected = [(largest >= abs(z[0, unit]) - 1e-9).mean() for unit in range(3)]
    assert p == pytest.approx(expected)


def test_a_unit_without_changes_has_no_effect():
    table = np.zeros((5, 5, 2))
    table[np.arange(5), np.arange(5), 0] = 1.0  # the own source restores, others do nothing
    table[:, :, 1] = 1e-9 * np.random.default_rng(0).standard_normal((5, 5))  # rounding
    blocks = [np.arange(5)]
    effects = estimate_effects(fill_changes(blocks, table), np.ones(5), blocks)
    assert effects.has_effect.tolist() == [True, False]
    assert effects.p[1] == 1
    assert effects.p[0] == pytest.approx(1 / 120)
    assert effects.mismatched == pytest.approx([0, 0], abs=1e-8)


def test_a_share_that_is_printed_as_zero_is_no_effect_however_certain():
    table = np.zeros((5, 5, 2))
    table[np.arange(5), np.arange(5)] = (0.004, 0.006)
    blocks = [np.arange(5)]
    effects = estimate_effects(fill_changes(blocks, table), np.ones(5), blocks)
    assert effects.p == pytest.approx([1 / 120] * 2)
    assert effects.has_effect.tolist() == [False, True]


def test_a_source_of_any_pair_that_restores_as_much_is_no_effect():
    random = np.random.default_rng(1)
    table = 0.9 + 0.05 * random.standard_normal((6, 6, 1))
    blocks = [np.arange(6)]
    effects = estimate_effects(fill_changes(blocks, table), np.ones(6), blocks)
    assert effects.restored[0] > 0.8
    assert effects.mismatched[0] == pytest.approx(effects.restored[0], abs=0.1)
    assert not effects.has_effect[0]


def test_a_unit_that_only_other_sources_change_has_no_effect():
    random = np.random.default_rng(2)
    table = 0.5 + 0.05 * random.standard_normal((6, 6, 1))
    table[np.arange(6), np.arange(6)] = 1e-4 * random.standard_normal((6, 1))
    blocks = [np.arange(6)]
    effects = estimate_effects(fill_changes(blocks, table), np.ones(6), blocks)
    assert effects.p[0] <= 0.05
    assert effects.mismatched[0] > 0.4
    assert not effects.has_effect[0]


def simulate(repetitions, seed, effect=0.0):
    """Shares of sweeps with a false effect, and with that of unit 0, over random tables."""
    random = np.random.default_rng(seed)
    false_count = true_count = 0
    for repetition in range(repetitions):
        blocks = make_blocks([5] * 7, max_size=4, seed=repetition)
        written, needed = random.standard_t(3, (2, 7, 10))  # heavy tails, as restored shares have
        table = written[None] * needed[:, None]
        table[np.arange(7), np.arange(7), 0] += effect
        _, p = compute_p_values(fill_changes(blocks, table), blocks, seed=repetition)
        false_count += bool((p[1:] <= 0.05).any())
        true_count += bool(p[0] <= 0.05)
    return false_count / repetitions, true_count / repetitions


def test_the_family_wise_error_rate_is_five_percent():
    false_rate, _ = simulate(400, seed=11)
    assert false_rate <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_a_strong_effect_among_others_is_found():
    _, power = simulate(60, seed=12, effect=20.0)
    assert power >= 0.8
