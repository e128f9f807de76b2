"""Vector scaling: known scales and shifts are recovered."""

import numpy as np
import pytest

from neural.tasks.segmentation.calibration.vector import Vector
from neural.tasks.segmentation.calibrator import fit_multinomial
from neural.tasks.segmentation.probability import scores_to_probabilities


def test_known_scales_and_shifts_are_found():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (30_000, 3))
    logits -= logits.max(axis=1, keepdims=True)
    scale, shift = np.array([0.5, 1.0, 2.0]), np.array([0.6, 0.0, -0.6])
    p = scores_to_probabilities(logits * scale + shift)
    truth = (rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)
    fitted = Vector.fit(logits, truth)
    np.testing.assert_allclose(fitted.scale, scale, rtol=0.06)
    np.testing.assert_allclose(fitted.shift, shift, atol=0.08)


def test_the_fit_is_a_minimum():
    rng = np.random.default_rng(1)
    logits, targets = rng.normal(0, 1, (50, 3)), rng.dirichlet(np.ones(3), 50)

    def compute_loss(weights):
        scaled = logits * weights[:3] + weights[3:]
        return -(targets * np.log(scores_to_probabilities(scaled))).sum()

    unbounded = np.full(6, -np.inf), np.full(6, np.inf)
    fitted = fit_multinomial(logits, targets, np.eye(6), *unbounded)
    least = compute_loss(fitted)
    assert all(compute_loss(fitted + 1e-3 * rng.normal(size=6)) >= least for _ in range(100))


def test_another_number_of_classes_is_refused():
    with pytest.raises(ValueError, match="calibrated for 2 classes, but these scores have 3"):
        Vector(scale=(1.0, 1.0), shift=(0.0, 0.0))(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="2 scales and 1 shifts"):
        Vector(scale=(1.0, 1.0), shift=(0.0,))
