"""p-values against scipy's, against the interval of the same values, and Holm's correction by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from neural.views.seeds import over_seeds
from neural.views.significance import fewest_pairs, holm, mean_test, p_text, rank_test


@pytest.mark.parametrize("seed", range(20))
def test_a_mean_that_is_decided_lies_outside_of_its_interval(seed):
    draw = np.random.default_rng(seed)
    values = draw.gamma(2, size=6) - draw.normal(1.5)
    interval, tails = over_seeds(values), mean_test(values)
    if tails.above <= 0.025:
        assert interval.low >= 0
    if tails.below <= 0.025:
        assert interval.high <= 0
    assert tails.two_sided >= stats.ttest_1samp(values, 0).pvalue - 1e-12, "never surer than Student's t"


def test_a_mean_without_skewness_has_the_wider_quantile_of_its_interval():
    values = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])
    student = stats.ttest_1samp(values, 0.5)
    assert mean_test(values, 0.5).two_sided == pytest.approx(student.pvalue / (1 - 1 / 5))
    interval = over_seeds(values)
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
    assert rank_test([0.0, 1.0, math.inf, math.inf]).above == pytest.approx(1 / 8), "0 is left out"
    assert math.isnan(rank_test([0.0, 0.0]).above)


def test_how_many_pairs_ranks_need():
    assert rank_test([1.0] * 5).two_sided == 0.0625
    assert fewest_pairs() == 6
    assert rank_test([1.0] * 6).two_sided <= 0.05
    assert 2 * 0.5 ** fewest_pairs(30) <= 0.05 / 30 < 2 * 0.5 ** (fewest_pairs(30) - 1)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_what_was_not_tested_does_not_count():
    first, untested, second = holm([0.02, math.nan, 0.04])
    assert (first, second) == (0.04, 0.04)
    assert math.isnan(untested)


def test_a_small_p_is_not_printed_as_0():
    assert [p_text(p) for p in (0.0, 3e-7, 0.00123, 0.5)] == ["<0.0001", "<0.0001", "0.00123", "0.5"]
