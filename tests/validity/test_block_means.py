"""The standard error of a mean over neighbouring windows holds the truth as often as it says."""

import numpy as np
import pytest
from scipy.special import stdtrit

from neural.tasks.block_means import block_mean


def series(draw, count, slow, share):
    """Values whose neighbours are alike: a slow part with `share` of the variance, the rest independent."""
    state, found = draw.normal(), np.empty(count)
    for at in range(count):
        found[at] = state
        state = slow * state + np.sqrt(1 - slow**2) * draw.normal()
    return np.sqrt(share) * found + np.sqrt(1 - share) * draw.normal(size=count)


def coverage(count, slow, share, repeats, seed=0):
    """How often the 95 % intervals by blocks, and those that take windows for independent, hold 0."""
    draw = np.random.default_rng(seed)
    by_blocks = naive = 0
    for _ in range(repeats):
        values = series(draw, count, slow, share)
        mean, error, blocks = block_mean(values)
        by_blocks += abs(mean) <= -stdtrit(blocks - 1, 0.025) * error
        naive += abs(mean) <= 1.96 * values.std(ddof=1) / np.sqrt(count)
    return by_blocks / repeats, naive / repeats


# (windows, correlation from one window to the next of the slow part, its share of the variance)
INDEPENDENT, NEIGHBOURS, PASSAGES = (512, 0.0, 0.0), (512, 0.5, 1.0), (2000, 0.97, 0.52)


@pytest.mark.parametrize("case", [INDEPENDENT, NEIGHBOURS, PASSAGES], ids=["independent", "neighbours", "passages"])
def test_intervals_by_blocks_hold_the_truth(case):
    held, _ = coverage(*case, repeats=300)
    assert 0.91 <= held <= 0.99, held


def test_windows_taken_for_independent_do_not():
    held, naive = coverage(726, 0.97, 0.52, repeats=300)   # lag 1 is .50 and lag 20 is .28, as on the handbook
    assert naive < 0.4
    assert held > 0.88


def test_few_windows_have_no_error_or_a_wide_one():
    assert np.isnan(block_mean(np.array([1.0, 2.0, 3.0])).standard_error)
    assert block_mean(np.array([1.0, 2.0, 3.0, 4.0])).blocks == 2
    assert np.isnan(block_mean(np.array([])).mean)


def rates(repeats=1000):
    """For the table of docs/analysis.md."""
    cases = {
        "independent windows": INDEPENDENT,
        "neighbouring windows correlate by .5": NEIGHBOURS,
        "passages of 30 windows, 2,000 windows": PASSAGES,
        "passages of 30 windows, 726 windows": (726, 0.97, 0.52),
    }
    held = {name: coverage(*case, repeats=repeats)[0] for name, case in cases.items()}
    about = {"what": "valid/standard_error", "repeats": repeats}
    return [{**about, "truth": name, "coverage": share} for name, share in held.items()]
