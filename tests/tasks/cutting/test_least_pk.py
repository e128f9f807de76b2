from itertools import product

import numpy as np
import pytest

from neural.tasks.cutting.least_pk import least_pk


def expected_pk(p, made, k):
    """By the definition: probe by probe, a boundary between with the probability that not all gaps are none."""
    wrong = 0.0
    for first in range(len(p) - k):
        apart = 1 - np.prod(1 - p[first + 1 : first + k + 1])
        wrong += 1 - apart if made[first + 1 : first + k + 1].any() else apart
    return wrong


@pytest.mark.parametrize("seed", range(12))
def test_no_other_segmentation_is_expected_to_do_better(seed):
    dice = np.random.default_rng(seed)
    count, k = int(dice.integers(3, 11)), int(dice.integers(1, 4))
    k = min(k, count - 1)
    p = np.concatenate([[0.0], dice.beta(0.4, 1.2, count - 1)])
    least = min(expected_pk(p, np.array((False, *rest)), k) for rest in product((False, True), repeat=count - 1))
    assert expected_pk(p, least_pk(p, k), k) == pytest.approx(least, abs=1e-6)


def test_a_boundary_whose_place_is_unsure_is_found_nevertheless():
    p = np.array([0, 0, 0, 0, 0, 0.3, 0.3, 0.3, 0, 0, 0, 0, 0])
    assert least_pk(p, 4).sum() == 1


@pytest.mark.parametrize("p", [[0.0], [0.0, 0.9], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
def test_short_documents_and_sure_answers(p):
    made = least_pk(p)
    assert len(made) == len(p) and not made[0]
