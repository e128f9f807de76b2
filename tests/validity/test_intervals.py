"""Simulated coverage of intervals over seeds."""

import numpy as np
import pytest

from neural.stats.means import estimate_mean, estimate_share

REPEATS = 4_000
"""The coverage is known to ±.007."""
DISTRIBUTIONS = {
    "normal": (lambda draw, shape: draw.normal(size=shape), 0.0),
    "heavy tails (t, 5 df)": (lambda draw, shape: draw.standard_t(5, size=shape), 0.0),
    "uniform": (lambda draw, shape: draw.random(shape), 0.5),
    "skewed (gamma 4)": (lambda draw, shape: draw.gamma(4, size=shape), 4.0),
    "skewed (log-normal .5)": (
        lambda draw, shape: draw.lognormal(0, 0.5, size=shape),
        np.exp(0.125),
    ),
    "very skewed (exponential)": (lambda draw, shape: draw.exponential(size=shape), 1.0),
}


def covers(estimate, truth):
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize("seeds", [5, 10, 20])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_mean_over_seeds(name, seeds):
    sample, truth = DISTRIBUTIONS[name]
    draws = sample(np.random.default_rng(0), (REPEATS, seeds))
    covered = np.mean([covers(estimate_mean(row), truth) for row in draws])
    assert 0.92 <= covered <= 0.98, covered


@pytest.mark.parametrize("clustering", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("heads", [4, 16, 36])
def test_the_share_of_heads_over_seeds(share, heads, clustering):
    draw = np.random.default_rng(1)
    shape = (REPEATS, 5)
    seed_shares = np.full(shape, share)
    if clustering:
        seed_shares = draw.beta(
            share * (1 / clustering - 1), (1 - share) * (1 / clustering - 1), size=shape
        )
    counts = draw.binomial(heads, seed_shares)
    estimates = [estimate_share(row.tolist(), [heads] * 5) for row in counts]
    covered = np.mean([covers(estimate, share) for estimate in estimates])
    assert 0.90 <= covered <= 0.99, covered


def test_a_share_of_0_still_has_an_interval():
    estimate = estimate_share([0] * 5, [16] * 5)
    assert (estimate.value, estimate.low) == (0, 0)
    assert 0.03 < estimate.high < 0.07
    assert estimate_share([16] * 5, [16] * 5).high == 1


def test_equal_seeds_have_no_interval():
    estimate = estimate_mean([2.0] * 5)
    assert estimate.value == 2
    assert np.isnan([estimate.low, estimate.high]).all()


def rates(repeats=4000):
    """For the table of docs/analysis.md."""
    rows, repeats = [], max(repeats, 2000)
    for name, (sample, truth) in DISTRIBUTIONS.items():
        for seeds in (5, 10):
            draws = sample(np.random.default_rng(2), (repeats, seeds))
            covered = np.mean([covers(estimate_mean(row), truth) for row in draws])
            shared = {"what": f"mean over {seeds} seeds", "truth": name}
            rows.append({**shared, "coverage": float(covered), "repeats": repeats})
    draw = np.random.default_rng(3)
    for clustering in (0.0, 0.1):
        shares = np.full((repeats, 5), 0.3)
        if clustering:
            scale = 1 / clustering - 1
            shares = draw.beta(0.3 * scale, 0.7 * scale, size=shares.shape)
        estimates = [estimate_share(row.tolist(), [16] * 5) for row in draw.binomial(16, shares)]
        covered = float(np.mean([covers(estimate, 0.3) for estimate in estimates]))
        truth = f"3 of 10, 16 heads a seed, heads of a seed correlate by {clustering:g}"
        rows.append(
            {
                "what": "share of heads, 5 seeds",
                "truth": truth,
                "coverage": covered,
                "repeats": repeats,
            }
        )
    return rows
