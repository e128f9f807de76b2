"""Correlation over seeds, on series whose truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from neural.views.correlation import (
    Association,
    Curve,
    correlate,
    differences,
    partial,
    permutation_p,
    ranks,
    shared,
    spearman,
)
from neural.views.seeds import Estimate


def curves(seeds: int, *, relation: float, steps: int = 100, draw: int = 0, wobble: float = 0.0):
    """Two falling curves for each seed, with noise of their own, and `relation` of the first's noise in the second."""
    random = np.random.default_rng(draw)
    at = np.arange(1, steps + 1) * 50
    fall = np.exp(-np.arange(steps) / 15)
    common = wobble * random.normal(size=steps)   # the same for all seeds
    found = []
    for _ in range(seeds):
        noise, other = random.normal(size=(2, steps)) * 0.05
        one = 3 * fall + noise + common
        two = 1.5 + 2 * fall + relation * noise + math.sqrt(1 - relation**2) * other + common
        found.append((exact(at, one), exact(at, two)))
    return found


def exact(at, values):
    """Measured twice without any noise."""
    return Curve(at, values, (values, values))


def test_spearman_is_that_of_scipy_with_ties():
    random = np.random.default_rng(3)
    one, other = random.integers(0, 7, 30), random.integers(0, 7, 30)
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert ranks(np.array([5, 1, 5, 9])).tolist() == [2.5, 1, 2.5, 4]


def test_partial_correlation_is_that_of_the_residuals_of_ranks():
    random = np.random.default_rng(4)
    steps = np.arange(40)
    one, other = steps + 10 * random.normal(size=40), steps + 10 * random.normal(size=40)
    line = ranks(steps)
    rest = [ranks(each) - np.polyval(np.polyfit(line, ranks(each), 1), line) for each in (one, other)]
    assert partial(steps, one, other) == pytest.approx(np.corrcoef(*rest)[0, 1])


def test_by_hand():
    steps, one, other = np.arange(4), np.array([0.0, 1, 3, 2]), np.array([5.0, 6, 8, 9])
    assert differences(steps, one, other) == pytest.approx(stats.spearmanr([1, 2, -1], [1, 2, 1]).statistic)
    # ranks 1 2 4 3, 1 2 3 4 and the steps': 0.8, 0.8, 1 → the second follows the steps exactly
    assert math.isnan(partial(steps, one, other))


def test_a_shared_trend_alone_is_no_relation():
    found = correlate(curves(5, relation=0.0, draw=1))
    assert found.raw.value > 0.5, "the trap: the values do correlate"
    assert found.verdict != "related"
    assert found.changes.is_ruled_out
    assert found.changes.p > 0.05
    assert found.permutations == math.factorial(5)


def test_a_shared_wobble_that_every_seed_has_is_no_relation_either():
    found = correlate(curves(5, relation=0.0, wobble=0.1, draw=1))
    pairs = [differences(one.steps, one.values, two.values) for one, two in curves(5, relation=0.0, wobble=0.1, draw=1)]
    assert min(pairs) > 0.5, "the second trap: so do the changes"
    assert found.verdict != "related"
    assert found.changes.is_ruled_out
    assert abs(found.own.value) < 0.1


@pytest.mark.parametrize("relation", [0.7, -0.7])
def test_a_planted_relation_is_found_with_its_sign(relation):
    found = correlate(curves(5, relation=relation))
    assert found.verdict == "related"
    assert min(found.changes.p, found.levels.p) <= 0.025
    assert math.copysign(1, found.own.value) == math.copysign(1, relation)
    assert found.own.value == pytest.approx(relation, abs=0.2)
    assert math.copysign(1, found.partial.value) == math.copysign(1, relation)


def test_what_is_unrelated_is_rarely_called_related():
    found = [correlate(curves(5, relation=0.0, steps=25, draw=draw)).verdict for draw in range(60)]
    assert found.count("related") <= 6   # 3 expected at 5 %


def test_three_seeds_are_too_few_however_clear_it_looks():
    found = correlate(curves(3, relation=0.99))
    assert found.verdict == "too few"
    assert "too few seeds (3; at least 5)" in str(found)


def test_a_constant_series_is_left_out_and_named():
    pairs = curves(6, relation=0.7)
    pairs[2] = (pairs[2][0], Curve(pairs[2][1].steps, np.full(100, 0.1)))
    found = correlate(pairs)
    assert (found.verdict, found.seeds) == ("related", 5)
    assert found.left_out == ("seed 3 of 6, a series without change",)
    assert correlate([(one, Curve(two.steps, np.zeros(100))) for one, two in pairs]).verdict == "too few"


def test_a_straight_line_is_no_change_whatever_the_rounding():
    line = Curve(np.arange(50), np.arange(50) * 0.1)
    assert correlate([(line, line)] * 5).verdict == "too few"


def test_rows_that_are_nan_are_left_out():
    pairs = curves(5, relation=0.7)
    holed = []
    for one, two in pairs:
        values = one.values.copy()
        values[10:20] = math.nan
        holed.append((exact(one.steps, values), two))
    found = correlate(holed)
    assert found.verdict == "related"
    assert found == correlate([(exact(np.delete(one.steps, range(10, 20)), np.delete(one.values, range(10, 20))), two)
                               for one, two in pairs])  # fmt: skip


def test_seeds_with_different_steps_count_where_their_series_meet():
    pairs = curves(5, relation=0.7)
    cut = [(Curve(one.steps[: 60 + 5 * seed], one.values[: 60 + 5 * seed]), Curve(two.steps[seed:], two.values[seed:]))
           for seed, (one, two) in enumerate(pairs)]  # fmt: skip
    found = correlate(cut)
    assert (found.verdict, found.seeds) == ("related", 5)
    steps, first, second = shared(*cut[3])
    assert (steps[0], steps[-1], len(first), len(second)) == (200, 75 * 50, 72, 72)


def test_too_few_steps_in_common_leave_a_seed_out():
    pairs = curves(6, relation=0.7)
    pairs[0] = (Curve(pairs[0][0].steps + 1, pairs[0][0].values), pairs[0][1])
    found = correlate(pairs)
    assert found.left_out == ("seed 1 of 6, 0 steps in common (at least 6)",)


def test_seeds_that_share_no_steps_with_each_other_leave_it_undecided():
    pairs = [(Curve(one.steps + seed, one.values), Curve(two.steps + seed, two.values))
             for seed, (one, two) in enumerate(curves(5, relation=0.7))]  # fmt: skip
    found = correlate(pairs)
    assert (found.verdict, found.seeds, math.isnan(found.changes.p)) == ("undecided", 5, True)


def test_p_is_counted_over_all_deals_where_they_are_few():
    matrix = np.eye(4)
    # of 24 deals the mean of fixed points has mean 1/4; only the true one is 3/4 away from it
    assert permutation_p(matrix, permutations=100, seed=0) == (1 / 24, 24)


def test_many_seeds_are_dealt_at_random_and_p_is_never_zero():
    p, deals = permutation_p(np.eye(9), permutations=1000, seed=0)
    assert (p, deals) == (pytest.approx(1 / 1001), 1000)
    assert permutation_p(np.eye(9), permutations=1000, seed=0) == (p, deals)


@pytest.mark.parametrize(
    ("low", "high", "p", "reliability", "found", "ruled_out"),
    [
        (0.2, 0.8, 0.01, 0.9, True, False), (-0.8, -0.2, 0.025, math.nan, True, False),
        (0.2, 0.8, 0.03, 0.9, False, False), (-0.1, 0.8, 0.01, 0.9, False, False),
        (-0.1, 0.2, 0.4, 0.9, False, True), (-0.1, 0.2, 0.4, 0.6, False, False), (-0.1, 0.2, 0.4, 0.4, False, False),
        (-0.1, 0.2, 0.01, 0.9, False, False),   # p says that there is something
        (-0.1, 0.2, 0.4, math.nan, False, False), (-0.4, 0.1, 0.4, 0.9, False, False),
        (math.nan, math.nan, math.nan, 0.9, False, False),
    ],
)  # fmt: skip
def test_p_and_the_interval_must_agree_and_absence_needs_reliability(low, high, p, reliability, found, ruled_out):
    own = Estimate(value=(low + high) / 2, low=low, high=high, seeds=5)
    association = Association(own=own, p=p, reliability=reliability)
    assert (association.is_found, association.is_ruled_out) == (found, ruled_out)


def test_the_answer_is_in_words():
    text = str(correlate(curves(5, relation=0.7)))
    assert text.startswith("related beyond the shared trend: of changes ")
    assert "120 permutations" in text
