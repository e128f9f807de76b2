"""Two settings over the same seeds: what their difference says, and when it says nothing."""

import math

import numpy as np
import pytest
from scipy import stats

from neural.views.paired import paired_difference, verdict


def test_the_interval_is_that_of_a_paired_t_test():
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 7))
    difference = paired_difference(dict(enumerate(second)), dict(enumerate(first)))
    wanted = stats.ttest_rel(second, first).confidence_interval(0.95)
    assert (difference.low, difference.high) == pytest.approx((wanted.low, wanted.high))
    assert (difference.value, difference.seeds) == (pytest.approx(np.mean(second - first)), 7)


def test_what_a_seed_does_to_both_does_not_hide_the_difference():
    """Seeds differ by ten, the settings by a tenth: unpaired, nothing could be said."""
    baseline = {0: 10.0, 1: 20.0, 2: 30.0}
    difference = paired_difference({0: 9.9, 1: 19.88, 2: 29.9}, baseline)
    assert verdict(difference, larger_is_better=False) == "better"
    assert verdict(difference, larger_is_better=True) == "worse"


def test_only_shared_seeds_with_numbers_are_pairs():
    difference = paired_difference(
        {0: 1.0, 1: 2.0, 3: math.nan, 4: 0.0}, {0: 0.5, 1: 1.0, 2: 5.0, 3: 1.0}
    )
    assert (difference.value, difference.seeds) == (0.75, 2)


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
        "the interval holds 0",
        "one shared seed",
        "no shared seed",
        "the same scores",
        "no scores",
    ],
)
def test_what_cannot_be_told_apart_is_undecided(scores, baseline):
    difference = paired_difference(scores, baseline)
    assert (
        verdict(difference, larger_is_better=True)
        == verdict(difference, larger_is_better=False)
        == "undecided"
    )
