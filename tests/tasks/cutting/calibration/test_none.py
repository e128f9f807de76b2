"""No calibration: the logistic function and softmax, nothing else."""

import numpy as np

from neural.tasks.cutting.calibration.none import None_


def test_margins_are_log_odds_and_logits_are_exponents():
    np.testing.assert_allclose(None_()([0.0, np.log(3)]), [0.5, 0.75])
    np.testing.assert_allclose(None_()([[0.0, np.log(3)]]), [[0.25, 0.75]])


def test_it_learns_nothing():
    assert None_.fit([4.0, 5.0], [0, 0]) == None_()
