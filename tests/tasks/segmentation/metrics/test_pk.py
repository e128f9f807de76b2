"""Pk: the published vectors, and segeval on random cases."""

import pytest
import segeval
from hypothesis import assume, given

from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths, lengths_to_boundaries
from neural.tasks.segmentation.metrics._probes import compute_probe_distance
from neural.tasks.segmentation.metrics.pk import Pk
from tests.tasks.segmentation.segmentations import boundaries_from_gaps, draw_pairs, quick_settings


def test_published_values():
    assert Pk().score(
        lengths_to_boundaries([2, 3, 6]), lengths_to_boundaries([2, 2, 7])
    ) == pytest.approx(2 / 9)
    assert Pk().score(
        boundaries_from_gaps("000001001000"), boundaries_from_gaps("000100010000")
    ) == pytest.approx(6 / 11)


@quick_settings
@given(draw_pairs())
def test_segeval_agrees(pair):
    truth, prediction = pair
    # segeval returns 0 for shorter documents, whatever the prediction
    assume(len(truth) > compute_probe_distance(truth) + 1)
    assert Pk().score(truth, prediction) == pytest.approx(
        float(segeval.pk(boundaries_to_lengths(prediction), boundaries_to_lengths(truth)))
    )


@pytest.mark.parametrize(
    ("lengths", "k"),
    [([2, 3, 6], 2), ([1, 1, 1, 1], 2), ([5, 5], 2), ([7, 7], 4), ([2], 1), ([3], 2)],
)
def test_the_probe_distance_is_half_a_true_segment(lengths, k):
    assert compute_probe_distance(lengths_to_boundaries(lengths)) == k


def test_a_wrong_boundary_counts_in_the_shortest_document():
    assert Pk().score([0, 1], [0, 0]) == 1
    assert Pk().score([0, 1], [0, 1]) == 0
    assert Pk().score([0], [0]) == 0


def test_several_documents_are_averaged():
    counts = Pk().count_documents(
        [lengths_to_boundaries([2, 3, 6]), [0, 0, 0]], [lengths_to_boundaries([2, 2, 7]), [0, 0, 0]]
    )
    assert float(Pk().scores(counts.sum(axis=0))["pk"]) == pytest.approx(1 / 9)
