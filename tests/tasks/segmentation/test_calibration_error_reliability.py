"""Reliability diagrams: bins, Wilson intervals, effective sample sizes."""

import json

import numpy as np
import pytest

from neural.tasks.segmentation.calibration_error import ReliabilityDiagram, compute_reliability


def test_bins_have_mean_probability_and_observed_frequency():
    p = np.array([0.05, 0.15, 0.95, 1.0])
    diagram = compute_reliability(p, np.array([0, 1, 1, 1.0]), np.arange(4), bins=2)
    assert diagram.counts == diagram.all_counts == (2, 2)
    assert diagram.edges == pytest.approx((0.55,))
    assert diagram.mean_probability == pytest.approx((0.1, 0.975))
    assert diagram.observed_frequency == pytest.approx((0.5, 1.0))


def test_bins_have_equal_counts_although_most_probabilities_are_small():
    rng = np.random.default_rng(0)
    p = rng.random(600) ** 4
    diagram = compute_reliability(p, rng.random(600) < p, np.arange(600) % 7, bins=15)
    assert diagram.counts == (40,) * 15
    assert all(low <= high for low, high in zip(diagram.low, diagram.high, strict=True))


def test_intervals_of_independent_elements_are_wilsons():
    hits = (np.arange(100) < 20).astype(float)
    diagram = compute_reliability(np.full(100, 0.3), hits, np.arange(100), bins=1)
    assert (diagram.low[0], diagram.high[0]) == (
        pytest.approx(0.1334, abs=1e-3),
        pytest.approx(0.2888, abs=1e-3),
    )


def test_a_frequency_of_zero_has_an_interval():
    diagram = compute_reliability(np.full(20, 0.3), np.zeros(20), np.arange(20), bins=1)
    assert diagram.low == (0,)
    assert 0.1 < diagram.high[0] < 0.2


def test_correlated_documents_have_wider_intervals():
    hits = np.repeat(np.tile([0.0, 1.0], 5), 30)
    correlated = compute_reliability(np.full(300, 0.5), hits, np.repeat(np.arange(10), 30), bins=1)
    independent = compute_reliability(np.full(300, 0.5), hits, np.arange(300), bins=1)
    width = correlated.high[0] - correlated.low[0]
    assert width > 4 * (independent.high[0] - independent.low[0])


def test_a_diagram_round_trips_through_json():
    rng = np.random.default_rng(0)
    diagram = compute_reliability(rng.random(40), rng.integers(2, size=40), np.arange(40) % 3)
    assert ReliabilityDiagram.from_dict(json.loads(json.dumps(diagram.to_dict()))) == diagram


def test_a_diagram_with_bins_of_equal_width_can_still_be_read():
    saved = {
        "counts": [2, 2],
        "mean_probability": [0.1, 0.975],
        "observed_frequency": [0.5, 1.0],
        "low": [0.1, 0.3],
        "high": [0.9, 1.0],
        "edges": [0.2, 0.4, 0.6, 0.8],
        "all_counts": [2, 0, 0, 0, 2],
    }
    diagram = ReliabilityDiagram.from_dict(saved)
    assert diagram.all_counts == (2, 0, 0, 0, 2)
    assert diagram.counts == (2, 2)
