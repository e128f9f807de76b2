"""How much a selected mean flatters: order statistics by hand, and what the noise is estimated from."""

import math

import numpy as np
import pytest

from neural.views.selection import describe_selection, expected_maximum


@pytest.mark.parametrize(
    ("count", "wanted"), [(1, 0.0), (2, 1 / math.sqrt(math.pi)), (3, 1.5 / math.sqrt(math.pi)), (12, 1.6292)]
)
def test_the_largest_of_several_normal_values(count, wanted):
    assert expected_maximum(count) == pytest.approx(wanted, abs=1e-4)


def scores(draw, settings, seeds, spread=1.0):
    shared = 5 * draw.normal(size=seeds)  # what a seed does to all settings selects nothing
    return [dict(enumerate(shared + spread * draw.normal(size=seeds))) for _ in range(settings)]


def test_what_a_seed_does_to_all_settings_is_no_noise():
    noises = [describe_selection(scores(np.random.default_rng(i), 12, 3)).noise for i in range(200)]
    assert np.mean(noises) == pytest.approx(1, abs=0.1)


def test_one_wild_setting_does_not_speak_for_all():
    draw = np.random.default_rng(0)
    tame, wild = scores(draw, 11, 3), scores(draw, 1, 3, spread=100.0)
    assert describe_selection([*tame, *wild]).noise < 3


def test_of_one_shared_seed_the_noise_is_not_known():
    assert math.isnan(describe_selection([{0: 1.0}, {0: 2.0}]).noise)
    assert math.isnan(describe_selection([{0: 1.0, 1: 2.0}, {2: 2.0, 3: 3.0}]).optimism)
