"""WindowDiff: the published vector, and segeval and nltk on random cases."""

import pytest
import segeval
from hypothesis import assume, given
from nltk.metrics.segmentation import windowdiff

from neural.tasks.cutting.masses import boundaries_of, masses
from neural.tasks.cutting.metrics._probes import probe_distance
from neural.tasks.cutting.metrics.pk import Pk
from neural.tasks.cutting.metrics.window_diff import WindowDiff
from tests.tasks.cutting.segmentations import pairs, quickly


def test_the_known_value():
    assert WindowDiff().of(boundaries_of([2, 3, 6]), boundaries_of([2, 2, 7])) == pytest.approx(2 / 9)


@quickly
@given(pairs())
def test_segeval_and_nltk_agree(pair):
    truth, prediction = pair
    k = probe_distance(truth)
    assume(len(truth) > k + 1)
    found = WindowDiff().of(truth, prediction)
    assert found == pytest.approx(float(segeval.window_diff(masses(prediction), masses(truth))))
    one, other = ("".join("01"[int(gap)] for gap in whole[1:]) for whole in pair)
    assert found == pytest.approx(windowdiff(one, other, k))


@quickly
@given(pairs(least=1))
def test_it_is_never_below_pk(pair):
    assert WindowDiff().of(*pair) >= Pk().of(*pair)


def test_two_boundaries_are_not_one():
    truth, prediction = boundaries_of([4, 4]), boundaries_of([3, 1, 4])
    assert WindowDiff().of(truth, prediction) > Pk().of(truth, prediction)
