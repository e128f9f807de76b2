"""Correlation over seeds, on series whose truth is known."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from neural.findings.check import CorrelationCheck
from neural.findings.checks import registry
from neural.stats.correlation import (
    Association,
    Curve,
    align_curves,
    correlate,
    correlate_changes,
    partial_correlation,
    permutation_test,
    rank_values,
    spearman,
)
from neural.stats.estimate import Estimate


def create_curves(
    seeds: int, *, relation: float, steps: int = 100, draw: int = 0, shared_noise: float = 0.0
):
    """Two falling curves per seed with noise; `relation` is the correlation of their noise."""
    random = np.random.default_rng(draw)
    step = np.arange(1, steps + 1) * 50
    fall = np.exp(-np.arange(steps) / 15)
    common = shared_noise * random.normal(size=steps)  # the same for all seeds
    pairs = []
    for _ in range(seeds):
        noise, independent = random.normal(size=(2, steps)) * 0.05
        related = relation * noise + math.sqrt(1 - relation**2) * independent
        first = 3 * fall + noise + common
        second = 1.5 + 2 * fall + related + common
        pairs.append((create_noiseless_curve(step, first), create_noiseless_curve(step, second)))
    return pairs


def create_noiseless_curve(steps, values):
    """A curve whose two halves are equal."""
    return Curve(steps, values, (values, values))


def test_spearman_is_that_of_scipy_with_ties():
    random = np.random.default_rng(3)
    first, second = random.integers(0, 7, 30), random.integers(0, 7, 30)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    assert rank_values(np.array([5, 1, 5, 9])).tolist() == [2.5, 1, 2.5, 4]


def test_partial_correlation_is_that_of_the_residuals_of_ranks():
    random = np.random.default_rng(4)
    steps = np.arange(40)
    first, second = steps + 10 * random.normal(size=40), steps + 10 * random.normal(size=40)
    line = rank_values(steps)
    residuals = [
        rank_values(values) - np.polyval(np.polyfit(line, rank_values(values), 1), line)
        for values in (first, second)
    ]
    assert partial_correlation(steps, first, second) == pytest.approx(np.corrcoef(*residuals)[0, 1])


def test_correlations_by_hand():
    steps, first, second = np.arange(4), np.array([0.0, 1, 3, 2]), np.array([5.0, 6, 8, 9])
    assert correlate_changes(steps, first, second) == pytest.approx(
        stats.spearmanr([1, 2, -1], [1, 2, 1]).statistic
    )
    # ranks 1 2 4 3, 1 2 3 4 and the steps': 0.8, 0.8, 1 → the second follows the steps exactly
    assert math.isnan(partial_correlation(steps, first, second))


def test_a_shared_trend_alone_is_no_relation():
    correlation = correlate(create_curves(5, relation=0.0, draw=1))
    assert correlation.raw.value > 0.5, "the trap: the values do correlate"
    assert correlation.verdict != "related"
    assert correlation.changes.is_ruled_out
    assert correlation.changes.p > 0.05
    assert correlation.permutation_count == math.factorial(5)


def test_noise_shared_by_all_seeds_is_no_relation_either():
    correlation = correlate(create_curves(5, relation=0.0, shared_noise=0.1, draw=1))
    pairs = [
        correlate_changes(first.steps, first.values, second.values)
        for first, second in create_curves(5, relation=0.0, shared_noise=0.1, draw=1)
    ]
    assert min(pairs) > 0.5, "the second trap: so do the changes"
    assert correlation.verdict != "related"
    assert correlation.changes.is_ruled_out
    assert abs(correlation.excess.value) < 0.1


@pytest.mark.parametrize("relation", [0.7, -0.7])
def test_a_planted_relation_is_found_with_its_sign(relation):
    correlation = correlate(create_curves(5, relation=relation))
    assert correlation.verdict == "related"
    assert min(correlation.changes.p, correlation.levels.p) <= 0.025
    assert math.copysign(1, correlation.excess.value) == math.copysign(1, relation)
    assert correlation.excess.value == pytest.approx(relation, abs=0.2)
    assert math.copysign(1, correlation.partial.value) == math.copysign(1, relation)


def test_unrelated_series_are_rarely_called_related():
    verdicts = [
        correlate(create_curves(5, relation=0.0, steps=25, draw=draw)).verdict for draw in range(60)
    ]
    assert verdicts.count("related") <= 6  # 3 expected at 5 %


def test_three_seeds_are_too_few_for_any_correlation():
    correlation = correlate(create_curves(3, relation=0.99))
    assert correlation.verdict == "too few"
    assert "needs 5 seeds, has 3" in str(correlation)


def test_a_constant_series_is_excluded_with_a_reason():
    pairs = create_curves(6, relation=0.7)
    pairs[2] = (pairs[2][0], Curve(pairs[2][1].steps, np.full(100, 0.1)))
    correlation = correlate(pairs)
    assert (correlation.verdict, correlation.seeds) == ("related", 5)
    assert correlation.excluded == ("seed 3 of 6, a series without change",)
    assert (
        correlate([(first, Curve(second.steps, np.zeros(100))) for first, second in pairs]).verdict
        == "too few"
    )


def test_a_straight_line_is_no_change_whatever_the_rounding():
    line = Curve(np.arange(50), np.arange(50) * 0.1)
    assert correlate([(line, line)] * 5).verdict == "too few"


def test_nan_values_are_ignored():
    pairs = create_curves(5, relation=0.7)
    with_nan = []
    for first, second in pairs:
        values = first.values.copy()
        values[10:20] = math.nan
        with_nan.append((create_noiseless_curve(first.steps, values), second))
    correlation = correlate(with_nan)
    assert correlation.verdict == "related"
    assert correlation == correlate(
        [
            (
                create_noiseless_curve(
                    np.delete(first.steps, range(10, 20)), np.delete(first.values, range(10, 20))
                ),
                second,
            )
            for first, second in pairs
        ]
    )


def test_series_with_different_steps_are_compared_at_shared_steps():
    pairs = create_curves(5, relation=0.7)
    shortened = [
        (
            Curve(first.steps[: 60 + 5 * seed], first.values[: 60 + 5 * seed]),
            Curve(second.steps[seed:], second.values[seed:]),
        )
        for seed, (first, second) in enumerate(pairs)
    ]
    correlation = correlate(shortened)
    assert (correlation.verdict, correlation.seeds) == ("related", 5)
    steps, first, second = align_curves(*shortened[3])
    assert (steps[0], steps[-1], len(first), len(second)) == (200, 75 * 50, 72, 72)


def test_a_seed_with_too_few_shared_steps_is_excluded():
    pairs = create_curves(6, relation=0.7)
    pairs[0] = (Curve(pairs[0][0].steps + 1, pairs[0][0].values), pairs[0][1])
    correlation = correlate(pairs)
    assert correlation.excluded == ("seed 1 of 6, 0 shared steps (at least 6)",)


def test_seeds_that_share_no_steps_with_each_other_leave_it_undecided():
    pairs = [
        (Curve(first.steps + seed, first.values), Curve(second.steps + seed, second.values))
        for seed, (first, second) in enumerate(create_curves(5, relation=0.7))
    ]
    correlation = correlate(pairs)
    assert (correlation.verdict, correlation.seeds, math.isnan(correlation.changes.p)) == (
        "undecided",
        5,
        True,
    )


def test_few_seeds_are_permuted_exhaustively():
    matrix = np.eye(4)
    # the share of fixed points has mean 1/4; of 24 assignments only the true one is 3/4 away
    assert permutation_test(matrix, permutations=100, seed=0) == (1 / 24, 24)


def test_many_seeds_are_permuted_at_random_and_p_is_never_zero():
    p, count = permutation_test(np.eye(9), permutations=1000, seed=0)
    assert (p, count) == (pytest.approx(1 / 1001), 1000)
    assert permutation_test(np.eye(9), permutations=1000, seed=0) == (p, count)


@pytest.mark.parametrize(
    ("low", "high", "p", "reliability", "significant", "ruled_out"),
    [
        (0.2, 0.8, 0.01, 0.9, True, False),
        (-0.8, -0.2, 0.025, math.nan, True, False),
        (0.2, 0.8, 0.03, 0.9, False, False),
        (-0.1, 0.8, 0.01, 0.9, False, False),
        (-0.1, 0.2, 0.4, 0.9, False, True),
        (-0.1, 0.2, 0.4, 0.6, False, False),
        (-0.1, 0.2, 0.4, 0.4, False, False),
        (-0.1, 0.2, 0.01, 0.9, False, False),  # p says that there is something
        (-0.1, 0.2, 0.4, math.nan, False, False),
        (-0.4, 0.1, 0.4, 0.9, False, False),
        (math.nan, math.nan, math.nan, 0.9, False, False),
    ],
)
def test_p_and_the_interval_must_agree_and_absence_needs_reliability(
    low, high, p, reliability, significant, ruled_out
):
    excess = Estimate(value=(low + high) / 2, low=low, high=high, n=5)
    association = Association(excess=excess, p=p, reliability=reliability)
    assert (association.is_significant, association.is_ruled_out) == (significant, ruled_out)


def test_the_result_is_printed_as_a_sentence():
    text = str(correlate(create_curves(5, relation=0.7)))
    assert text.startswith(
        "related beyond the shared trend: own curves minus other seeds', of changes "
    )
    assert "120 permutations" in text


def test_what_exceeds_one_is_not_called_a_correlation():
    # both curves of a seed rise or fall together, against those of the other seeds
    steps, draw = np.arange(1, 21), np.random.default_rng(0)
    slopes = np.array([-1, 1, -1, 1, -1, 1])[:, None] * np.linspace(0, 5, 20)
    curves = [Curve(steps, slope + draw.normal(size=20)) for slope in slopes]
    result = correlate(list(zip(curves, curves, strict=True)))
    assert result.levels.excess.value > 1
    named = re.findall(r"Spearman (−?[0-9.]+)", str(result))
    assert named and all(abs(float(number.replace("−", "-"))) <= 1 for number in named)
    assert f"minus other seeds', of levels {result.levels.excess}" in str(result)


def test_no_difference_of_correlations_has_the_unit_spearman():
    checks = [registry.get(name) for name in registry.names()]
    units = [check.unit for check in checks if issubclass(check, CorrelationCheck)]
    assert units and not any("Spearman" in unit for unit in units)
