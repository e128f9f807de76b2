"""Expected calibration error: by hand, of perfect models, and the coverage of its interval."""

import numpy as np
import pytest

from neural.tasks.segmentation.calibration_error import (
    estimate_calibration_errors,
    simulate_perfect_model,
)


def draw_predictions(count, seed, shift=0.0):
    """Probabilities, hits whose true log-odds are higher by `shift`, and document ids."""
    rng = np.random.default_rng(seed)
    margin = rng.normal(-1, 1.5, count)
    p = 1 / (1 + np.exp(-margin))
    hits = (rng.random(count) < 1 / (1 + np.exp(-margin - shift))).astype(float)
    return p, hits, np.arange(count) % 50


def test_two_bins_by_hand():
    p = np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.9])
    hits = np.array([0, 0, 0, 1, 0, 0.0])
    errors = estimate_calibration_errors(p, hits, np.arange(6) % 2)
    assert errors.plain.value == pytest.approx((4 * 0.15 + 2 * 0.9) / 6)
    assert errors.equal_mass.value == pytest.approx(errors.plain.value)
    chance = 0.25 * 0.75 / 3
    expected = np.sqrt((4 * (0.15**2 - chance) + 2 * 0.9**2) / 6)
    assert errors.debiased.value == pytest.approx(expected)


def test_certain_and_right_is_perfect_and_certain_and_wrong_is_1():
    hits = np.tile([0.0, 1.0], 30)
    documents = np.arange(60) // 6
    for p, expected in ((hits, 0), (1 - hits, 1)):
        errors = estimate_calibration_errors(p, hits, documents)
        for error in (errors.plain, errors.equal_mass, errors.debiased):
            assert error.value == pytest.approx(expected)
            assert np.isnan(error.low)  # no document differs from another


def test_one_document_has_values_without_intervals():
    errors = estimate_calibration_errors(np.array([0.3]), np.array([1.0]), np.array([0]))
    assert errors.plain.value == pytest.approx(0.7)
    assert np.isnan(errors.plain.low)


def test_only_the_debiased_error_of_a_perfect_model_is_about_0():
    errors = [estimate_calibration_errors(*draw_predictions(1000, seed)) for seed in range(40)]
    assert np.mean([error.plain.value for error in errors]) > 0.025
    assert np.median([error.debiased.value for error in errors]) < 0.01


def test_the_interval_of_a_miscalibrated_model_covers_its_error():
    p, _, _ = draw_predictions(200_000, 99)
    true_p = 1 / (1 + (1 - p) / p * np.exp(-0.7))
    mean_error, rms = np.abs(true_p - p).mean(), np.sqrt(((true_p - p) ** 2).mean())
    errors = [
        estimate_calibration_errors(*draw_predictions(1500, seed, shift=0.7)) for seed in range(40)
    ]
    assert sum(error.plain.low <= mean_error <= error.plain.high for error in errors) >= 34
    assert sum(error.debiased.low <= rms <= error.debiased.high for error in errors) >= 34


def test_the_value_is_the_middle_of_its_interval():
    for seed in range(5):
        plain = estimate_calibration_errors(*draw_predictions(1000, seed)).plain
        assert (plain.low + plain.high) / 2 == pytest.approx(plain.value)


def test_a_perfect_model_measures_what_the_simulation_predicts():
    p, _, _ = draw_predictions(600, 0)
    simulated = simulate_perfect_model(p, simulations=300)
    rng = np.random.default_rng(5)
    samples = (rng.random((100, 600)) < p).astype(float)
    errors = [
        estimate_calibration_errors(p, hits, np.zeros(600, int)).plain.value for hits in samples
    ]
    assert simulated.value == pytest.approx(np.mean(errors), rel=0.08)
    assert 80 <= sum(simulated.low <= error <= simulated.high for error in errors) <= 98


def test_an_error_of_a_hundredth_on_four_thousand_lines_can_be_perfect_calibration():
    rng = np.random.default_rng(0)
    simulated = simulate_perfect_model(rng.beta(6, 1, 4072).clip(0.5), simulations=300)
    assert simulated.low < 0.0149 < simulated.high


def test_a_perfect_model_with_correlated_documents_has_a_larger_error():
    rng = np.random.default_rng(0)
    p, documents = rng.random(1200), np.repeat(np.arange(20), 60)
    # all elements of a document share one random number
    correlated = (rng.random(20)[documents] < p).astype(float)
    alone, clustered = simulate_perfect_model(p), simulate_perfect_model(p, correlated, documents)
    assert clustered.high > 2 * alone.high
    independent = (rng.random(1200) < p).astype(float)
    assert simulate_perfect_model(p, independent, documents).high < 1.4 * alone.high
