"""Vector scaling: a model that favours a class is found out."""

import numpy as np
import pytest

from neural.tasks.cutting.calibration.vector import Vector
from neural.tasks.cutting.logistic import multinomial
from neural.tasks.cutting.probability import plain_probabilities


def test_planted_scales_and_shifts_are_found():
    random = np.random.default_rng(0)
    logits = random.normal(0, 3, (30_000, 3))
    logits -= logits.max(axis=1, keepdims=True)
    scale, shift = np.array([0.5, 1.0, 2.0]), np.array([0.6, 0.0, -0.6])
    p = plain_probabilities(logits * scale + shift)
    truth = (random.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)
    fitted = Vector.fit(logits, truth)
    np.testing.assert_allclose(fitted.scale, scale, rtol=0.06)
    np.testing.assert_allclose(fitted.shift, shift, atol=0.08)


def test_the_fit_is_where_nothing_near_is_better():
    random = np.random.default_rng(1)
    logits, shares = random.normal(0, 1, (50, 3)), random.dirichlet(np.ones(3), 50)

    def height(weights):
        changed = logits * weights[:3] + weights[3:]
        return -(shares * np.log(plain_probabilities(changed))).sum()

    free = np.full(6, -np.inf), np.full(6, np.inf)
    found = multinomial(logits, shares, np.eye(6), *free)
    lowest = height(found)
    assert all(height(found + 1e-3 * random.normal(size=6)) >= lowest for _ in range(100))


def test_another_number_of_classes_is_refused():
    with pytest.raises(ValueError, match="calibrated for 2 classes, but these scores have 3"):
        Vector(scale=(1.0, 1.0), shift=(0.0, 0.0))(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="2 scales and 1 shifts"):
        Vector(scale=(1.0, 1.0), shift=(0.0,))
