"""Power and selection bias: by hand and by simulation."""

import math

import numpy as np
import pytest

from neural.stats.means import estimate_mean
from neural.stats.power import (
    estimate_correlation_power,
    estimate_selection_bias,
    expected_normal_maximum,
    find_smallest_effect,
)


@pytest.mark.parametrize("seeds", [5, 7, 10, 20])
def test_the_smallest_effect_is_found_with_the_target_power(seeds):
    draw = np.random.default_rng(123)
    samples = draw.normal(find_smallest_effect(seeds), 1, (2000, seeds))
    power = np.mean([estimate_mean(values).low > 0 for values in samples])
    assert 0.77 <= power <= 0.83


def test_more_seeds_find_smaller_effects():
    effects = [find_smallest_effect(seeds) for seeds in (5, 7, 10, 20)]
    assert effects == sorted(effects, reverse=True)
    assert effects[-1] < 1


def test_fewer_than_five_seeds_find_nothing():
    assert math.isnan(find_smallest_effect(4))
    assert estimate_correlation_power(4, 40, 0.9) == 0


def test_too_few_steps_find_no_correlation():
    assert estimate_correlation_power(5, 4, 0.9) == 0


def test_a_larger_correlation_is_found_more_often_and_none_rarely():
    none, strong = (estimate_correlation_power(5, 40, r, simulations=40) for r in (0.0, 0.7))
    assert none <= 0.15  # 5 %, counted in 40 studies
    assert strong >= 0.9


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, 0.0), (2, 1 / math.sqrt(math.pi)), (3, 1.5 / math.sqrt(math.pi)), (12, 1.6292)],
)
def test_the_expected_maximum_of_normal_values(count, expected):
    assert expected_normal_maximum(count) == pytest.approx(expected, abs=1e-4)


def create_scores(draw, settings, seeds, std=1.0):
    common = 5 * draw.normal(size=seeds)  # a common effect of a seed selects no setting
    return [dict(enumerate(common + std * draw.normal(size=seeds))) for _ in range(settings)]


def test_the_common_effect_of_a_seed_is_not_noise():
    noises = [
        estimate_selection_bias(create_scores(np.random.default_rng(i), 12, 3)).noise_std
        for i in range(200)
    ]
    assert np.mean(noises) == pytest.approx(1, abs=0.1)


def test_one_noisy_setting_does_not_dominate_the_estimate():
    draw = np.random.default_rng(0)
    normal, noisy = create_scores(draw, 11, 3), create_scores(draw, 1, 3, std=100.0)
    assert estimate_selection_bias([*normal, *noisy]).noise_std < 3


def test_the_noise_of_one_shared_seed_is_unknown():
    assert math.isnan(estimate_selection_bias([{0: 1.0}, {0: 2.0}]).noise_std)
    assert math.isnan(estimate_selection_bias([{0: 1.0, 1: 2.0}, {2: 2.0, 3: 3.0}]).optimism)
