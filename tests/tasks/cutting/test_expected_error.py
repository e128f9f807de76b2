"""Expected calibration error: by hand, of perfect models, and what its interval holds."""

import numpy as np
import pytest

from neural.tasks.cutting.expected_error import expected_errors, of_a_perfect_model


def drawn(count, seed, wrong=0.0):
    """Probabilities, and truths that come true with odds of e^wrong times what is said."""
    random = np.random.default_rng(seed)
    margin = random.normal(-1, 1.5, count)
    p = 1 / (1 + np.exp(-margin))
    return p, (random.random(count) < 1 / (1 + np.exp(-margin - wrong))).astype(float), np.arange(count) % 50


def test_two_bins_by_hand():
    p = np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.9])
    hits = np.array([0, 0, 0, 1, 0, 0.0])
    found = expected_errors(p, hits, np.arange(6) % 2)
    assert found.plain.value == pytest.approx((4 * 0.15 + 2 * 0.9) / 6)
    assert found.equal_mass.value == pytest.approx(found.plain.value)
    chance = 0.25 * 0.75 / 3
    assert found.debiased.value == pytest.approx(np.sqrt((4 * (0.15**2 - chance) + 2 * 0.9**2) / 6))


def test_certain_and_right_is_perfect_and_certain_and_wrong_is_1():
    hits = np.tile([0.0, 1.0], 30)
    documents = np.arange(60) // 6
    for said, wanted in ((hits, 0), (1 - hits, 1)):
        found = expected_errors(said, hits, documents)
        for one in (found.plain, found.equal_mass, found.debiased):
            assert one.value == pytest.approx(wanted)
            assert np.isnan(one.low)   # no document differs from another


def test_one_document_has_values_without_intervals():
    found = expected_errors(np.array([0.3]), np.array([1.0]), np.array([0]))
    assert found.plain.value == pytest.approx(0.7)
    assert np.isnan(found.plain.low)


def test_only_the_debiased_error_of_a_perfect_model_is_about_0():
    squared = [expected_errors(*drawn(1000, seed)) for seed in range(40)]
    assert np.mean([one.plain.value for one in squared]) > 0.025
    assert np.median([one.debiased.value for one in squared]) < 0.01


def test_the_interval_of_a_wrong_model_holds_its_error():
    p, _, _ = drawn(200_000, 99)
    off = 1 / (1 + (1 - p) / p * np.exp(-0.7))   # what comes true where p is said
    error, rms = np.abs(off - p).mean(), np.sqrt(((off - p) ** 2).mean())
    found = [expected_errors(*drawn(1500, seed, wrong=0.7)) for seed in range(40)]
    assert sum(one.plain.low <= error <= one.plain.high for one in found) >= 34
    assert sum(one.debiased.low <= rms <= one.debiased.high for one in found) >= 34


def test_the_value_is_the_middle_of_its_interval():
    for seed in range(5):
        found = expected_errors(*drawn(1000, seed)).plain
        assert (found.low + found.high) / 2 == pytest.approx(found.value)


def test_a_perfect_model_measures_what_the_simulation_says():
    p, _, _ = drawn(600, 0)
    said = of_a_perfect_model(p, simulations=300)
    random = np.random.default_rng(5)
    hits = (random.random((100, 600)) < p).astype(float)
    found = [expected_errors(p, one, np.zeros(600, int)).plain.value for one in hits]
    assert said.value == pytest.approx(np.mean(found), rel=0.08)
    assert 80 <= sum(said.low <= one <= said.high for one in found) <= 98


def test_an_error_of_a_hundredth_on_four_thousand_lines_can_be_perfect_calibration():
    random = np.random.default_rng(0)
    said = of_a_perfect_model(random.beta(6, 1, 4072).clip(0.5), simulations=300)
    assert said.low < 0.0149 < said.high


def test_a_perfect_model_whose_documents_go_together_shows_more():
    random = np.random.default_rng(0)
    p, documents = random.random(1200), np.repeat(np.arange(20), 60)
    together = (random.random(20)[documents] < p).astype(float)   # all elements of a document share one number
    alone, clustered = of_a_perfect_model(p), of_a_perfect_model(p, together, documents)
    assert clustered.high > 2 * alone.high
    independent = (random.random(1200) < p).astype(float)
    assert of_a_perfect_model(p, independent, documents).high < 1.4 * alone.high
