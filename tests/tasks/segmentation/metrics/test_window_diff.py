"""WindowDiff: the published vector, and segeval and nltk on random cases."""

import pytest
import segeval
from hypothesis import assume, given
from nltk.metrics.segmentation import windowdiff

from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths, lengths_to_boundaries
from neural.tasks.segmentation.metrics._probes import compute_probe_distance
from neural.tasks.segmentation.metrics.pk import Pk
from neural.tasks.segmentation.metrics.window_diff import WindowDiff
from tests.tasks.segmentation.segmentations import draw_pairs, quick_settings


def test_the_published_value():
    assert WindowDiff().score(
        lengths_to_boundaries([2, 3, 6]), lengths_to_boundaries([2, 2, 7])
    ) == pytest.approx(2 / 9)


@quick_settings
@given(draw_pairs())
def test_segeval_and_nltk_agree(pair):
    truth, prediction = pair
    k = compute_probe_distance(truth)
    assume(len(truth) > k + 1)
    score = WindowDiff().score(truth, prediction)
    assert score == pytest.approx(
        float(segeval.window_diff(boundaries_to_lengths(prediction), boundaries_to_lengths(truth)))
    )
    gap_strings = ["".join("01"[int(gap)] for gap in boundaries[1:]) for boundaries in pair]
    assert score == pytest.approx(windowdiff(*gap_strings, k))


@quick_settings
@given(draw_pairs(min_size=1))
def test_it_is_never_below_pk(pair):
    assert WindowDiff().score(*pair) >= Pk().score(*pair)


def test_two_boundaries_are_not_one():
    truth, prediction = lengths_to_boundaries([4, 4]), lengths_to_boundaries([3, 1, 4])
    assert WindowDiff().score(truth, prediction) > Pk().score(truth, prediction)
