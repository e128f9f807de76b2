"""Baseline with segments of equal length."""

import pytest

from neural.tasks.segmentation.baselines.every_k import EveryK
from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths, lengths_to_boundaries


def test_segments_have_the_length_and_the_last_the_rest():
    assert boundaries_to_lengths(EveryK(length=3).predict(["x"] * 8)) == [3, 3, 2]
    assert boundaries_to_lengths(EveryK(length=9).predict(["x"] * 8)) == [8]


def test_the_length_is_the_mean_of_the_training_segments():
    assert (
        EveryK.from_training([lengths_to_boundaries([2, 4]), lengths_to_boundaries([9])]).length
        == 5
    )


def test_a_length_below_one_and_no_training_documents_are_refused():
    with pytest.raises(ValueError, match="length"):
        EveryK(length=0)
    with pytest.raises(ValueError, match="there are none"):
        EveryK.from_training([])
