"""Boundary similarity: the published vectors, and segeval on random cases."""

import pytest
import segeval
from hypothesis import assume, given

from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths, lengths_to_boundaries
from neural.tasks.segmentation.metrics.boundary_similarity import BoundarySimilarity
from tests.tasks.segmentation.segmentations import boundaries_from_gaps, draw_pairs, quick_settings

B = BoundarySimilarity().score


@pytest.mark.parametrize(
    ("prediction", "value"),
    [([2, 2, 7], 0.75), ([5, 6], 0.5), ([2, 3, 3, 3], 2 / 3), ([2, 3, 6], 1.0)],
)
def test_published_values(prediction, value):
    score = B(lengths_to_boundaries([2, 3, 6]), lengths_to_boundaries(prediction))
    assert score == pytest.approx(value)


@quick_settings
@given(draw_pairs(min_size=2))
def test_segeval_agrees(pair):
    truth, prediction = pair
    assume(truth.any() or prediction.any())  # segeval divides by zero
    assert B(truth, prediction) == pytest.approx(
        float(
            segeval.boundary_similarity(
                boundaries_to_lengths(truth), boundaries_to_lengths(prediction)
            )
        )
    )


@quick_settings
@given(draw_pairs(min_size=1))
def test_it_is_symmetric(pair):
    assert B(*pair) == B(*reversed(pair))


def test_a_boundary_is_at_most_one_near_miss():
    assert B(boundaries_from_gaps("00100"), boundaries_from_gaps("01010")) == pytest.approx(
        1 - 1.5 / 2
    )


def test_no_boundaries_at_all_score_1():
    assert B(boundaries_from_gaps("0000"), boundaries_from_gaps("0000")) == 1
    assert B(boundaries_from_gaps("0000"), boundaries_from_gaps("0100")) == 0
