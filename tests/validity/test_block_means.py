"""Coverage of intervals of a mean over neighbouring, correlated windows."""

import numpy as np
import pytest

from neural.stats.blocks import estimate_mean_by_blocks


def create_series(draw, count, slow, share):
    """A correlated component with `share` of the variance plus independent noise."""
    state, component = draw.normal(), np.empty(count)
    for index in range(count):
        component[index] = state
        state = slow * state + np.sqrt(1 - slow**2) * draw.normal()
    return np.sqrt(share) * component + np.sqrt(1 - share) * draw.normal(size=count)


def coverage(count, slow, share, repeats, seed=0):
    """Coverage of 95 % intervals by blocks, and of intervals that assume independent windows."""
    draw = np.random.default_rng(seed)
    by_blocks = naive = 0
    for _ in range(repeats):
        values = create_series(draw, count, slow, share)
        mean = estimate_mean_by_blocks(values)
        estimate = mean.estimate()
        by_blocks += estimate.low <= 0 <= estimate.high
        naive += abs(mean.value) <= 1.96 * values.std(ddof=1) / np.sqrt(count)
    return by_blocks / repeats, naive / repeats


# (windows, correlation of the component from window to window, its share of the variance)
INDEPENDENT, NEIGHBOURS, PASSAGES = (512, 0.0, 0.0), (512, 0.5, 1.0), (2000, 0.97, 0.52)


@pytest.mark.parametrize(
    "case", [INDEPENDENT, NEIGHBOURS, PASSAGES], ids=["independent", "neighbours", "passages"]
)
def test_intervals_by_blocks_cover_the_truth(case):
    covered, _ = coverage(*case, repeats=300)
    assert 0.91 <= covered <= 0.99, covered


def test_intervals_that_assume_independent_windows_do_not():
    # lag 1 is .50 and lag 20 is .28, as on the handbook
    covered, naive = coverage(726, 0.97, 0.52, repeats=300)
    assert naive < 0.4
    assert covered > 0.88


def test_few_windows_have_no_error_or_a_wide_one():
    values = np.random.default_rng(0).normal(size=32)
    assert np.isnan(estimate_mean_by_blocks(values[:31]).standard_error)
    assert estimate_mean_by_blocks(values).blocks == 2
    assert np.isnan(estimate_mean_by_blocks(np.array([])).value)


def test_equal_windows_do_not_show_how_much_they_vary():
    assert np.isnan(estimate_mean_by_blocks(np.full(64, 0.25)).standard_error)


@pytest.mark.parametrize("windows", [40, 80])
def test_few_strongly_correlated_windows_are_covered(windows):
    """Neighbours correlate by .9, as in a series of one passage."""
    covered, _ = coverage(windows, 0.9, 1.0, repeats=400)
    assert covered >= 0.88, covered


def rates(repeats=1000):
    """For the table of docs/analysis.md."""
    cases = {
        "independent windows": INDEPENDENT,
        "neighbouring windows correlate by .5": NEIGHBOURS,
        "passages of 30 windows, 2,000 windows": PASSAGES,
        "passages of 30 windows, 726 windows": (726, 0.97, 0.52),
        "neighbouring windows correlate by .9, 80 windows": (80, 0.9, 1.0),
        "neighbouring windows correlate by .9, 40 windows": (40, 0.9, 1.0),
    }
    covered = {name: coverage(*case, repeats=repeats)[0] for name, case in cases.items()}
    shared = {"what": "valid/standard_error", "repeats": repeats}
    return [{**shared, "truth": name, "coverage": share} for name, share in covered.items()]
