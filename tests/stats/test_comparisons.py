"""Paired comparisons and p-values: by hand and by scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from neural.stats.comparisons import (
    adjust_p_values,
    compare_pairs,
    decide_verdict,
    format_p_value,
    mean_test,
    min_deciding_pairs,
    rank_test,
)
from neural.stats.means import estimate_mean


def compare_one(scores, baseline, *, larger_is_better=False):
    (comparison,) = compare_pairs([scores], baseline, larger_is_better=larger_is_better)
    return comparison


def test_the_interval_is_that_of_all_means_over_seeds():
    random = np.random.default_rng(0)
    first, second = random.gamma(2, size=(2, 7))
    difference = compare_one(dict(enumerate(second)), dict(enumerate(first))).difference
    assert difference == estimate_mean(second - first)


def test_the_common_effect_of_a_seed_does_not_hide_the_difference():
    """Seeds differ by ten, the settings by a tenth: an unpaired test would find nothing."""
    baseline = {0: 10.0, 1: 20.0, 2: 30.0}
    difference = compare_one({0: 9.9, 1: 19.89, 2: 29.9}, baseline).difference
    assert decide_verdict(difference, larger_is_better=False) == "better"
    assert decide_verdict(difference, larger_is_better=True) == "worse"


def test_only_shared_seeds_are_pairs():
    difference = compare_one({0: 1.0, 1: 2.0, 4: 0.0}, {0: 0.5, 1: 1.0, 2: 5.0}).difference
    assert (difference.value, difference.n) == (0.75, 2)


@pytest.mark.parametrize("failed", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("larger_is_better", [True, False])
def test_failed_seeds_are_worse_than_any_other(failed, larger_is_better):
    """.02 better with six seeds does not outweigh two that diverged."""
    sign = 1 if larger_is_better else -1
    baseline = {seed: 0.5 + 0.01 * seed for seed in range(8)}
    better = {seed: value + sign * (0.02 + 0.0001 * seed) for seed, value in baseline.items()}
    options = {"larger_is_better": larger_is_better}
    assert compare_one(better, baseline, **options).verdict == "better"
    unstable = {**better, 0: failed, 1: failed}
    comparison = compare_one(unstable, baseline, **options)
    assert comparison.verdict == "undecided"
    assert comparison.difference.value == -sign * math.inf
    assert compare_one(dict.fromkeys(range(8), failed), baseline, **options).verdict == "worse"
    assert compare_one(baseline, dict.fromkeys(range(8), failed), **options).verdict == "better"


@pytest.mark.parametrize(
    ("scores", "baseline"),
    [
        ({0: 1.0, 1: 2.0, 2: 2.0}, {0: 2.0, 1: 1.0, 2: 2.0}),
        ({0: 1.0}, {0: 5.0}),
        ({0: 1.0, 1: 2.0}, {2: 5.0, 3: 6.0}),
        ({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}),
        ({}, {}),
    ],
    ids=[
        "the interval contains 0",
        "one shared seed",
        "no shared seed",
        "the same scores",
        "no scores",
    ],
)
def test_indistinguishable_scores_are_undecided(scores, baseline):
    difference = compare_one(scores, baseline).difference
    assert (
        decide_verdict(difference, larger_is_better=True)
        == decide_verdict(difference, larger_is_better=False)
        == "undecided"
    )


def scores_around(mean, std=0.001):
    return {seed: mean + std * noise for seed, noise in enumerate((-4, 3, 1, -2, 2))}


BASELINE = dict.fromkeys(range(5), 1.0)


def test_several_candidates_share_one_error_rate():
    """As a single comparison the difference is significant, as one of ten it is not."""
    candidate = {0: 1.02, 1: 1.01, 2: 1.03, 3: 1.025, 4: 1.01}
    (single,) = compare_pairs([candidate], BASELINE, larger_is_better=True)
    assert single.verdict == "better"
    ten = compare_pairs([candidate] * 10, BASELINE, larger_is_better=True)
    assert {comparison.verdict for comparison in ten} == {"undecided"}
    assert ten[0].p == pytest.approx(10 * single.p)


def test_a_selected_baseline_counts_every_pair():
    candidates = [scores_around(2.0), scores_around(3.0), scores_around(1.006)]
    comparisons = compare_pairs(candidates, BASELINE, larger_is_better=False, is_selected=True)
    assert [comparison.verdict for comparison in comparisons] == ["worse", "worse", "undecided"]
    (single,) = compare_pairs(candidates[2:], BASELINE, larger_is_better=False)
    assert single.verdict == "worse"
    assert comparisons[2].p == pytest.approx(6 * single.p), "4 settings are 6 pairs"


def test_equal_differences_have_no_p():
    (comparison,) = compare_pairs([dict.fromkeys(range(3), 2.0)], BASELINE, larger_is_better=True)
    assert math.isnan(comparison.p)
    assert comparison.verdict == "undecided"


@pytest.mark.parametrize("seed", range(20))
def test_a_significant_mean_has_an_interval_without_0(seed):
    draw = np.random.default_rng(seed)
    values = draw.gamma(2, size=6) - draw.normal(1.5)
    interval, tails = estimate_mean(values), mean_test(values)
    if tails.above <= 0.025:
        assert interval.low >= 0
    if tails.below <= 0.025:
        assert interval.high <= 0
    assert tails.two_sided >= stats.ttest_1samp(values, 0).pvalue - 1e-12, "never below Student's t"


def test_a_mean_without_skewness_has_the_wider_quantile_of_its_interval():
    values = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])
    student = stats.ttest_1samp(values, 0.5)
    assert mean_test(values, 0.5).two_sided == pytest.approx(student.pvalue / (1 - 1 / 5))
    interval = estimate_mean(values)
    assert mean_test(values, interval.low).two_sided == pytest.approx(0.05)


def test_the_sides_change_places_with_the_sign():
    values = np.array([0.4, 1.0, 0.2, 2.0, 0.9])
    above, below = mean_test(values, 0.1), mean_test(-values, -0.1)
    assert (above.above, above.below) == pytest.approx((below.below, below.above))


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, 2.0], [math.nan, 1.0]])
def test_values_that_do_not_vary_are_not_tested(values):
    tails = mean_test(values)
    assert np.isnan([tails.above, tails.below, tails.two_sided]).all()


@pytest.mark.parametrize("seed", range(8))
def test_ranks_are_those_of_wilcoxons_exact_test(seed):
    values = np.random.default_rng(seed).normal(0.5, size=9)
    tails = rank_test(values)
    assert tails.above == pytest.approx(stats.wilcoxon(values, alternative="greater").pvalue)
    assert tails.below == pytest.approx(stats.wilcoxon(values, alternative="less").pvalue)


def test_ranks_with_ties_by_hand():
    # |values| share the ranks 1.5, 1.5, 3; of 8 equally likely signs one has all three, one 4.5
    assert rank_test([1.0, 1.0, 2.0]).above == pytest.approx(1 / 8)
    assert rank_test([-1.0, 1.0, 2.0]).above == pytest.approx(3 / 8)
    assert rank_test([0.0, 1.0, math.inf, math.inf]).above == pytest.approx(1 / 8), "0 is excluded"
    assert math.isnan(rank_test([0.0, 0.0]).above)


def test_the_number_of_pairs_that_ranks_need():
    assert rank_test([1.0] * 5).two_sided == 0.0625
    assert min_deciding_pairs() == 6
    assert rank_test([1.0] * 6).two_sided <= 0.05
    assert 2 * 0.5 ** min_deciding_pairs(30) <= 0.05 / 30 < 2 * 0.5 ** (min_deciding_pairs(30) - 1)


def test_holm_by_hand():
    assert adjust_p_values([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjust_p_values([0.9, 0.8]) == [1.0, 1.0]
    assert adjust_p_values([]) == []


def test_missing_tests_are_not_counted():
    first, untested, second = adjust_p_values([0.02, math.nan, 0.04])
    assert (first, second) == (0.04, 0.04)
    assert math.isnan(untested)


def test_a_small_p_is_not_printed_as_0():
    assert [format_p_value(p) for p in (0.0, 3e-7, 0.00123, 0.5)] == [
        "<0.0001",
        "<0.0001",
        "0.00123",
        "0.5",
    ]
