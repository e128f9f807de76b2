"""Faithfulness: areas by hand, random explanations score 0, true ones score best."""

import numpy as np
import pytest
import torch

from neural.capture.faithfulness import draw_replacements, measure_faithfulness
from neural.capture.residual_stream import AttributionError
from neural.stats.means import estimate_mean

LENGTH = 6
TOKENS = torch.zeros(LENGTH, dtype=torch.long)
REPLACEMENTS = torch.ones(1, LENGTH, dtype=torch.long)


def create_additive_model(weights):
    """Log-probability that falls by the weight of each replaced token."""
    return lambda variants: -(variants.numpy() * weights).sum(axis=1)


def measure(weights, scores, **options):
    return measure_faithfulness(
        create_additive_model(np.asarray(weights, float)), TOKENS, scores, REPLACEMENTS, **options
    )


def test_curves_and_areas_by_hand():
    """One token has all of the weight; it is the first, or the last, of the order."""
    weights = [0, 0, 6, 0, 0, 0]
    result = measure(weights, {"right": np.array(weights), "wrong": -np.array(weights)}, steps=6)
    np.testing.assert_allclose(result.shares, np.arange(7) / 6)
    np.testing.assert_array_equal(result.curves["right"].deletion, [0, -6, -6, -6, -6, -6, -6])
    np.testing.assert_array_equal(result.curves["right"].insertion, [-6, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(result.curves["wrong"].deletion, [0, 0, 0, 0, 0, 0, -6])
    np.testing.assert_array_equal(result.curves["wrong"].insertion, [-6, -6, -6, -6, -6, -6, 0])
    # area −5.5 against −0.5: the difference of the gains is that of the areas
    assert result.deletion_gain("right") - result.deletion_gain("wrong") == pytest.approx(5)
    assert result.insertion_gain("right") - result.insertion_gain("wrong") == pytest.approx(5)
    assert result.gain("right") > 0 > result.gain("wrong")


def test_random_orders_are_the_zero():
    """Over all random orders of an example, the mean gain is 0 by definition."""
    result = measure([1, 2, 3, 4, 5, 6], {"any": np.arange(6)}, random_orders=50)
    areas = [result._area(curves.deletion) for curves in result.random]
    expected = np.mean(areas) - result._area(result.curves["any"].deletion)
    assert result.deletion_gain("any") == pytest.approx(expected)
    assert len(result.random) == 50


def test_random_explanations_score_zero_within_their_intervals():
    """Skewed weights: one token matters most, as in language. 320 examples, 40 intervals."""
    rng = np.random.default_rng(0)
    gains = []
    for number in range(320):
        weights = rng.exponential(size=LENGTH) ** 2
        weights[-1] += 4
        scores = {"random": rng.random(LENGTH), "truth": weights}
        result = measure(weights, scores, seed=number)
        gains.append([result.gain("random"), result.gain("truth")])
    random, truth = np.array(gains).T
    whole = estimate_mean(random)
    assert whole.low <= 0 <= whole.high
    intervals = [estimate_mean(random[start : start + 8]) for start in range(0, 320, 8)]
    covered = sum(estimate.low <= 0 <= estimate.high for estimate in intervals)
    assert covered >= 34  # 38 are expected; below 34 has a chance of 1.4 % at 95 %
    assert estimate_mean(truth).low > 1


def test_ties_are_broken_at_random_not_by_position():
    weights = np.array([5.0, 0, 0, 0, 0, 0])
    gains = [measure(weights, {"flat": np.zeros(6)}, seed=seed).gain("flat") for seed in range(200)]
    estimate = estimate_mean(gains)
    assert estimate.low <= 0 <= estimate.high


def test_all_methods_use_the_same_replacements_and_random_orders():
    scores = np.array([3.0, 1, 2, 0, 5, 4])
    alone = measure([1, 2, 3, 4, 5, 6], {"a": scores}, seed=3)
    assert alone.gain("a") == measure([1, 2, 3, 4, 5, 6], {"a": scores}, seed=3).gain("a")
    together = measure([1, 2, 3, 4, 5, 6], {"a": scores, "b": scores.copy()}, seed=3)
    assert together.gain("a") == together.gain("b")


def test_replacements_differ_from_the_tokens_and_follow_their_frequency():
    pool = torch.tensor([0] * 30 + [1] * 60 + [2] * 10)
    tokens = torch.tensor([0, 1, 2, 2])
    generator = torch.Generator().manual_seed(0)
    drawn = draw_replacements(pool, tokens, 3000, generator)
    assert drawn.shape == (3000, 4)
    assert not (drawn == tokens).any()
    assert (drawn[:, 2] == 1).float().mean() == pytest.approx(60 / 90, abs=0.03)
    # a pool without another token leaves the token in place
    same = draw_replacements(torch.tensor([4, 4]), torch.tensor([4]), 2, generator)
    assert same.tolist() == [[4], [4]]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"short": np.zeros(3)}, "`short` must be 6 finite numbers"),
        ({"nan": np.full(6, np.nan)}, "`nan` must be 6 finite numbers"),
    ],
)
def test_bad_scores_get_a_message(scores, message):
    with pytest.raises(AttributionError, match=message):
        measure([1] * 6, scores)


def test_values_that_are_not_finite_and_single_tokens_get_a_message():
    with pytest.raises(AttributionError, match="not finite on replaced tokens"):
        measure([np.nan] * 6, {"a": np.arange(6)})
    with pytest.raises(AttributionError, match="at least two source positions"):
        measure_faithfulness(lambda variants: variants, TOKENS[:1], {}, REPLACEMENTS[:, :1])
