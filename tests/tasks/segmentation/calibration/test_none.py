"""No calibration: sigmoid and softmax."""

import numpy as np

from neural.tasks.segmentation.calibration.none import None_


def test_margins_become_sigmoids_and_logits_softmax():
    np.testing.assert_allclose(None_()([0.0, np.log(3)]), [0.5, 0.75])
    np.testing.assert_allclose(None_()([[0.0, np.log(3)]]), [[0.25, 0.75]])


def test_there_is_nothing_to_fit():
    assert None_.fit([4.0, 5.0], [0, 0]) == None_()
