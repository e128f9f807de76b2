"""Two settings over the same seeds: what their difference says, and when it says nothing."""

import math

import numpy as np
import pytest

from neural.views.paired import compare_pairs, paired_difference, verdict
from neural.views.seeds import over_seeds


def test_the_interval_is_that_of_all_means_over_seeds():
    random = np.random.default_rng(0)
    first, second = random.gamma(2, size=(2, 7))
    difference = paired_difference(dict(enumerate(second)), dict(enumerate(first)))
    assert difference == over_seeds(second - first)


def test_what_a_seed_does_to_both_does_not_hide_the_difference():
    """Seeds differ by ten, the settings by a tenth: unpaired, nothing could be said."""
    baseline = {0: 10.0, 1: 20.0, 2: 30.0}
    difference = paired_difference({0: 9.9, 1: 19.89, 2: 29.9}, baseline)
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


def scores_around(mean, spread=0.001):
    return {seed: mean + spread * noise for seed, noise in enumerate((-4, 3, 1, -2, 2))}


BASELINE = dict.fromkeys(range(5), 1.0)


def test_several_candidates_share_one_error_rate():
    """Alone the difference is decided, as one of ten it is not."""
    candidate = {0: 1.02, 1: 1.01, 2: 1.03, 3: 1.025, 4: 1.01}
    (alone,) = compare_pairs([candidate], BASELINE, larger_is_better=True)
    assert alone.verdict == "better"
    ten = compare_pairs([candidate] * 10, BASELINE, larger_is_better=True)
    assert {each.verdict for each in ten} == {"undecided"}
    assert ten[0].p == pytest.approx(10 * alone.p)


def test_a_selected_baseline_counts_every_pair():
    candidates = [scores_around(2.0), scores_around(3.0), scores_around(1.006)]
    compared = compare_pairs(candidates, BASELINE, larger_is_better=False, is_selected=True)
    assert [each.verdict for each in compared] == ["worse", "worse", "undecided"]
    (alone,) = compare_pairs(candidates[2:], BASELINE, larger_is_better=False)
    assert alone.verdict == "worse"
    assert compared[2].p == pytest.approx(6 * alone.p), "4 settings are 6 pairs"


def test_equal_differences_have_no_p():
    (compared,) = compare_pairs([dict.fromkeys(range(3), 2.0)], BASELINE, larger_is_better=True)
    assert math.isnan(compared.p)
    assert compared.verdict == "undecided"
