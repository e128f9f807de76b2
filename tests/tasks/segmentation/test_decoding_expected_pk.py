"""Decoding for the least expected Pk: compared with enumeration."""

from itertools import product

import numpy as np
import pytest

from neural.tasks.segmentation.decoding import decode_expected_pk


def expected_pk(p, boundaries, k):
    """By definition: the sum over probes of the probability that the prediction is wrong."""
    total = 0.0
    for first in range(len(p) - k):
        p_boundary = 1 - np.prod(1 - p[first + 1 : first + k + 1])
        is_separated = boundaries[first + 1 : first + k + 1].any()
        total += 1 - p_boundary if is_separated else p_boundary
    return total


@pytest.mark.parametrize("seed", range(12))
def test_no_other_segmentation_has_a_lower_expected_pk(seed):
    rng = np.random.default_rng(seed)
    count, k = int(rng.integers(3, 11)), int(rng.integers(1, 4))
    k = min(k, count - 1)
    p = np.concatenate([[0.0], rng.beta(0.4, 1.2, count - 1)])
    least = min(
        expected_pk(p, np.array((False, *gaps)), k)
        for gaps in product((False, True), repeat=count - 1)
    )
    assert expected_pk(p, decode_expected_pk(p, k, min_peak_share=0), k) == pytest.approx(
        least, abs=1e-6
    )


@pytest.mark.parametrize("seed", range(12))
def test_with_a_mask_no_allowed_segmentation_has_a_lower_expected_pk(seed):
    rng = np.random.default_rng(seed)
    count, k = int(rng.integers(3, 11)), int(rng.integers(1, 4))
    k = min(k, count - 1)
    p = np.concatenate([[0.0], rng.beta(0.6, 0.8, count - 1)])
    can_begin = rng.random(count) < 0.5
    least = min(
        expected_pk(p, np.array((False, *gaps)), k)
        for gaps in product((False, True), repeat=count - 1)
        if not (np.array((False, *gaps)) & ~can_begin).any()
    )
    boundaries = decode_expected_pk(p, k, can_begin, min_peak_share=0)
    assert not (boundaries & ~can_begin).any()
    assert expected_pk(p, boundaries, k) == pytest.approx(least, abs=1e-6)


def test_no_boundary_is_found_where_none_is_allowed():
    assert not decode_expected_pk([0.0, 1.0, 1.0, 1.0], can_begin=np.zeros(4, bool)).any()


def test_a_boundary_of_uncertain_position_is_found():
    p = np.array([0, 0, 0, 0, 0, 0.3, 0.3, 0.3, 0, 0, 0, 0, 0])
    assert decode_expected_pk(p, 4).sum() == 1


@pytest.mark.parametrize("p", [[0.0], [0.0, 0.9], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
def test_short_documents_and_certain_probabilities_are_decoded(p):
    boundaries = decode_expected_pk(p)
    assert len(boundaries) == len(p) and not boundaries[0]


def test_no_second_boundary_stands_beside_a_sure_one():
    p = np.full(30, 1e-6)
    p[[3, 15]] = 0.99
    assert np.flatnonzero(decode_expected_pk(p)).tolist() == [3, 15]
    assert np.flatnonzero(decode_expected_pk(p, min_peak_share=0)).tolist() == [3, 15]


def test_boundaries_that_change_no_probe_are_left_out():
    p = np.full(40, 0.05)
    p[20:] = 1e-6
    # one boundary separates all probes of the first half that shall be separated
    assert decode_expected_pk(p, 20, threshold=0.55).sum() == 1


@pytest.mark.parametrize("seed", range(30))
def test_no_boundary_is_far_less_probable_than_a_place_that_is_passed_over(seed):
    rng = np.random.default_rng(seed)
    p, k = rng.beta(0.15, 1.5, 200), 12
    p[:20], p[100:], p[150] = 0.06, 0.001, 0.35
    can_begin = rng.random(200) < 0.9
    boundaries = decode_expected_pk(p, k, can_begin, threshold=0.55)
    chosen = np.flatnonzero(boundaries)
    for place in np.flatnonzero(can_begin & ~boundaries)[1:]:
        if (np.abs(chosen - place) > k // 2).all():
            assert (p[chosen] >= 0.7 * p[place]).all()
