"""Parts of one length."""

import pytest

from neural.tasks.cutting.baselines.every_k import EveryK
from neural.tasks.cutting.masses import boundaries_of, masses


def test_parts_have_the_length_and_the_last_what_is_left():
    assert masses(EveryK(length=3).boundaries(["x"] * 8)) == [3, 3, 2]
    assert masses(EveryK(length=9).boundaries(["x"] * 8)) == [8]


def test_the_length_is_the_mean_of_the_training_parts():
    assert EveryK.of([boundaries_of([2, 4]), boundaries_of([9])]).length == 5


def test_a_length_below_one_and_no_training_documents_are_refused():
    with pytest.raises(ValueError, match="length"):
        EveryK(length=0)
    with pytest.raises(ValueError, match="there are none"):
        EveryK.of([])
