"""Temperature scaling: a known temperature is recovered; a worked example."""

import numpy as np
import pytest

from neural.tasks.segmentation.calibration.temperature import Temperature
from neural.tasks.segmentation.probability import probabilities_to_margins, scores_to_probabilities


def test_a_temperature_below_1_increases_confidence():
    assert Temperature(temperature=0.735)(probabilities_to_margins([0.99]))[0] == pytest.approx(
        0.99808, abs=5e-6
    )
    assert Temperature(temperature=0.735)(probabilities_to_margins([0.5]))[0] == pytest.approx(0.5)


@pytest.mark.parametrize("temperature", [0.5, 0.735, 3.0, 40.0])
@pytest.mark.parametrize("classes", [None, 2, 5])
def test_a_known_temperature_is_found(temperature, classes):
    rng = np.random.default_rng(0)
    true_scores = rng.normal(0, 2, 20_000 if classes is None else (20_000, classes))
    p = scores_to_probabilities(true_scores)
    thresholds = p if classes is None else p.cumsum(axis=1)
    draws = rng.random(thresholds.shape[:1] if classes is None else (len(p), 1))
    truth = draws < thresholds if classes is None else (draws > thresholds).sum(axis=1)
    fitted = Temperature.fit(temperature * true_scores, truth)
    assert fitted.temperature == pytest.approx(temperature, rel=0.04)


def test_two_classes_equal_one_margin():
    rng = np.random.default_rng(0)
    logits, truth = rng.normal(0, 2, (300, 2)), rng.integers(2, size=300)
    temperature = Temperature.fit(logits, truth).temperature
    assert temperature == pytest.approx(
        Temperature.fit(logits[:, 1] - logits[:, 0], truth).temperature, rel=1e-6
    )


def test_the_temperature_is_bounded():
    assert Temperature.fit([1e-9, -1e-9] * 50, [1, 0] * 50).temperature == pytest.approx(1e-3)
    assert Temperature.fit([1.0, -1.0] * 50, [0, 1] * 50).temperature == pytest.approx(1e3)
    with pytest.raises(ValueError, match="above 0"):
        Temperature(temperature=0.0)
