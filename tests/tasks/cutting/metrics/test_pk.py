"""Pk: the published vectors, and segeval on random cases."""

import pytest
import segeval
from hypothesis import assume, given

from neural.tasks.cutting.masses import boundaries_of, masses
from neural.tasks.cutting.metrics._probes import probe_distance
from neural.tasks.cutting.metrics.pk import Pk
from tests.tasks.cutting.segmentations import gaps, pairs, quickly


def test_the_known_values():
    assert Pk().of(boundaries_of([2, 3, 6]), boundaries_of([2, 2, 7])) == pytest.approx(2 / 9)
    assert Pk().of(gaps("000001001000"), gaps("000100010000")) == pytest.approx(6 / 11)


@quickly
@given(pairs())
def test_segeval_agrees(pair):
    truth, prediction = pair
    assume(len(truth) > probe_distance(truth) + 1)   # below, segeval says 0 whatever was predicted
    assert Pk().of(truth, prediction) == pytest.approx(float(segeval.pk(masses(prediction), masses(truth))))


@pytest.mark.parametrize(
    ("lengths", "k"), [([2, 3, 6], 2), ([1, 1, 1, 1], 2), ([5, 5], 2), ([7, 7], 4), ([2], 1), ([3], 2)]
)
def test_probes_reach_half_a_true_part(lengths, k):
    assert probe_distance(boundaries_of(lengths)) == k


def test_a_wrong_boundary_counts_in_the_shortest_document():
    assert Pk().of([0, 1], [0, 0]) == 1
    assert Pk().of([0, 1], [0, 1]) == 0
    assert Pk().of([0], [0]) == 0


def test_several_documents_are_averaged():
    counts = Pk().counts([boundaries_of([2, 3, 6]), [0, 0, 0]], [boundaries_of([2, 2, 7]), [0, 0, 0]])
    assert float(Pk().scores(counts.sum(axis=0))["pk"]) == pytest.approx(1 / 9)
