"""Temperature: found again where it was planted, and the numbers of the worked example."""

import numpy as np
import pytest

from neural.tasks.cutting.calibration.temperature import Temperature
from neural.tasks.cutting.probability import margins, plain_probabilities


def test_a_temperature_below_1_makes_a_model_surer():
    assert Temperature(temperature=0.735)(margins([0.99]))[0] == pytest.approx(0.99808, abs=5e-6)
    assert Temperature(temperature=0.735)(margins([0.5]))[0] == pytest.approx(0.5)


@pytest.mark.parametrize("planted", [0.5, 0.735, 3.0, 40.0])
@pytest.mark.parametrize("classes", [None, 2, 5])
def test_a_planted_temperature_is_found(planted, classes):
    random = np.random.default_rng(0)
    right = random.normal(0, 2, 20_000 if classes is None else (20_000, classes))
    p = plain_probabilities(right)
    if classes is None:
        truth = random.random(len(p)) < p
    else:
        truth = (random.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)
    assert Temperature.fit(planted * right, truth).temperature == pytest.approx(planted, rel=0.04)


def test_two_classes_are_one_margin():
    random = np.random.default_rng(0)
    logits, truth = random.normal(0, 2, (300, 2)), random.integers(2, size=300)
    one = Temperature.fit(logits, truth).temperature
    assert one == pytest.approx(Temperature.fit(logits[:, 1] - logits[:, 0], truth).temperature, rel=1e-6)


def test_a_temperature_has_ends():
    assert Temperature.fit([1e-9, -1e-9] * 50, [1, 0] * 50).temperature == pytest.approx(1e-3)
    assert Temperature.fit([1.0, -1.0] * 50, [0, 1] * 50).temperature == pytest.approx(1e3)
    with pytest.raises(ValueError, match="above 0"):
        Temperature(temperature=0.0)
