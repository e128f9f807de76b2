"""Intervals over seeds hold the truth as often as they say: simulated coverage."""

import numpy as np
import pytest

from neural.views.seeds import over_seeds, share_over_seeds

REPEATS = 4_000
"""The coverage is known to ±.007."""
DISTRIBUTIONS = {
    "normal": (lambda draw, shape: draw.normal(size=shape), 0.0),
    "heavy tails (t, 5 df)": (lambda draw, shape: draw.standard_t(5, size=shape), 0.0),
    "uniform": (lambda draw, shape: draw.random(shape), 0.5),
    "skewed (gamma 4)": (lambda draw, shape: draw.gamma(4, size=shape), 4.0),
    "skewed (log-normal .5)": (lambda draw, shape: draw.lognormal(0, 0.5, size=shape), np.exp(0.125)),
    "very skewed (exponential)": (lambda draw, shape: draw.exponential(size=shape), 1.0),
}


@pytest.mark.parametrize("seeds", [5, 10, 20])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_mean_over_seeds(name, seeds):
    sample, truth = DISTRIBUTIONS[name]
    draws = sample(np.random.default_rng(0), (REPEATS, seeds))
    covered = np.mean([(found := over_seeds(row)).low <= truth <= found.high for row in draws])
    assert 0.92 <= covered <= 0.98, covered


@pytest.mark.parametrize("clustering", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("heads", [4, 16, 36])
def test_the_share_of_heads_over_seeds(share, heads, clustering):
    draw = np.random.default_rng(1)
    shape = (REPEATS, 5)
    own = np.full(shape, share)
    if clustering:
        own = draw.beta(share * (1 / clustering - 1), (1 - share) * (1 / clustering - 1), size=shape)
    counts = draw.binomial(heads, own)
    found = [share_over_seeds(row.tolist(), [heads] * 5) for row in counts]
    covered = np.mean([one.low <= share <= one.high for one in found])
    assert 0.90 <= covered <= 0.99, covered


def test_no_head_in_any_seed_is_not_certainty():
    found = share_over_seeds([0] * 5, [16] * 5)
    assert (found.value, found.low) == (0, 0)
    assert 0.03 < found.high < 0.07


def test_equal_seeds_have_no_interval():
    found = over_seeds([2.0] * 5)
    assert found.value == 2
    assert np.isnan([found.low, found.high]).all()


def rates(repeats=4000):
    """For the table of docs/analysis.md."""
    rows, repeats = [], max(repeats, 2000)
    for name, (sample, truth) in DISTRIBUTIONS.items():
        for seeds in (5, 10):
            draws = sample(np.random.default_rng(2), (repeats, seeds))
            held = np.mean([(found := over_seeds(row)).low <= truth <= found.high for row in draws])
            about = {"what": f"mean over {seeds} seeds", "truth": name}
            rows.append({**about, "coverage": float(held), "repeats": repeats})
    draw = np.random.default_rng(3)
    for clustering in (0.0, 0.1):
        own = np.full((repeats, 5), 0.3)
        if clustering:
            own = draw.beta(0.3 * (1 / clustering - 1), 0.7 * (1 / clustering - 1), size=own.shape)
        found = [share_over_seeds(row.tolist(), [16] * 5) for row in draw.binomial(16, own)]
        held = float(np.mean([one.low <= 0.3 <= one.high for one in found]))
        truth = f"3 of 10, 16 heads a seed, heads of a seed correlate by {clustering:g}"
        rows.append({"what": "share of heads, 5 seeds", "truth": truth, "coverage": held, "repeats": repeats})
    return rows
