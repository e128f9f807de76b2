"""Boundary similarity: the published vectors, and segeval on random cases."""

import pytest
import segeval
from hypothesis import assume, given

from neural.tasks.cutting.masses import boundaries_of, masses
from neural.tasks.cutting.metrics.boundary_similarity import BoundarySimilarity
from tests.tasks.cutting.segmentations import gaps, pairs, quickly

B = BoundarySimilarity().of


@pytest.mark.parametrize(
    ("other", "value"), [([2, 2, 7], 0.75), ([5, 6], 0.5), ([2, 3, 3, 3], 2 / 3), ([2, 3, 6], 1.0)]
)
def test_the_known_values(other, value):
    assert B(boundaries_of([2, 3, 6]), boundaries_of(other)) == pytest.approx(value)


@quickly
@given(pairs(least=2))
def test_segeval_agrees(pair):
    truth, prediction = pair
    assume(truth.any() or prediction.any())   # segeval falls over
    assert B(truth, prediction) == pytest.approx(float(segeval.boundary_similarity(masses(truth), masses(prediction))))


@quickly
@given(pairs(least=1))
def test_it_is_the_same_both_ways(pair):
    assert B(*pair) == B(*reversed(pair))


def test_a_boundary_is_one_near_miss_at_most():
    assert B(gaps("00100"), gaps("01010")) == pytest.approx(1 - 1.5 / 2)


def test_nothing_to_find_and_nothing_found_is_right():
    assert B(gaps("0000"), gaps("0000")) == 1
    assert B(gaps("0000"), gaps("0100")) == 0
