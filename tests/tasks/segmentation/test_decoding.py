"""Decoding finds the best segmentation within length bounds: compared with enumeration."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths
from neural.tasks.segmentation.decoding import compute_log_odds, decode_boundaries
from tests.tasks.segmentation.segmentations import quick_settings

PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=9)


def total_gain(boundaries, probabilities, threshold=0.5) -> float:
    """Sum of the gains of the boundaries."""
    gains = compute_log_odds(probabilities) - compute_log_odds([threshold])
    return float(gains[np.flatnonzero(boundaries)].sum())


def list_compositions(total, shortest, longest):
    """All ordered lists of lengths from `shortest` to `longest` with this total."""
    if shortest <= total <= longest:
        yield (total,)
    for first in range(shortest, min(longest, total - 1) + 1):
        for others in list_compositions(total - first, shortest, longest):
            yield (first, *others)


def enumerate_best_gain(probabilities, shortest, longest, threshold=0.5) -> float | None:
    """Largest total gain; None if no segmentation is within the bounds."""
    gains = (compute_log_odds(probabilities) - compute_log_odds([threshold])).tolist()
    candidates = list_compositions(len(gains), shortest, longest)
    return max(
        (sum(gains[start] for start in accumulate(lengths[:-1])) for lengths in candidates),
        default=None,
    )


@quick_settings
@given(PROBABILITIES, st.integers(1, 4), st.integers(0, 4), st.sampled_from([0.1, 0.5, 0.8]))
def test_no_other_segmentation_within_the_bounds_is_better(
    probabilities, shortest, extra, threshold
):
    longest = shortest + extra
    best = enumerate_best_gain(probabilities, shortest, longest, threshold)
    boundaries = decode_boundaries(
        probabilities, min_elements=shortest, max_elements=longest, threshold=threshold
    )
    lengths = boundaries_to_lengths(boundaries)
    assert max(lengths) <= longest
    if best is not None:
        assert min(lengths) >= shortest
        assert total_gain(boundaries, probabilities, threshold) == pytest.approx(best, abs=1e-9)
    else:
        lowered = next(
            length
            for length in range(shortest, 0, -1)
            if enumerate_best_gain(probabilities, length, longest) is not None
        )
        assert min(lengths) >= lowered, "the minimum is lowered as little as possible"


@quick_settings
@given(PROBABILITIES, st.integers(1, 9))
def test_without_a_maximum_only_short_segments_are_excluded(probabilities, shortest):
    boundaries = decode_boundaries(probabilities, min_elements=shortest)
    allowed = min(shortest, len(probabilities))
    assert min(boundaries_to_lengths(boundaries)) >= allowed
    assert total_gain(boundaries, probabilities) == pytest.approx(
        enumerate_best_gain(probabilities, allowed, 99), abs=1e-9
    )


@st.composite
def draw_masked_probabilities(draw):
    probabilities = draw(PROBABILITIES)
    count = len(probabilities)
    return probabilities, np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))


@quick_settings
@given(draw_masked_probabilities(), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 4)))
def test_segments_begin_only_where_they_can(masked_probabilities, shortest, extra):
    """If the bounds allow it; otherwise the fewest boundaries are elsewhere."""
    probabilities, can_begin = masked_probabilities
    longest = None if extra is None else shortest + extra
    count = len(probabilities)
    gains = (compute_log_odds(probabilities) - compute_log_odds([0.5])).tolist()
    ranks = []
    for lengths in list_compositions(count, 1, longest or count):
        starts = list(accumulate(lengths[:-1]))
        ranks.append(
            (
                sum(not can_begin[start] for start in starts),
                sum(length < min(shortest, count) for length in lengths),
                -sum(gains[start] for start in starts),
            )
        )
    best = min(ranks)
    boundaries = decode_boundaries(
        probabilities, min_elements=shortest, max_elements=longest, can_begin=can_begin
    )
    lengths = boundaries_to_lengths(boundaries)
    assert max(lengths) <= (longest or count)
    assert (boundaries & ~can_begin).sum() == best[0]
    if best[1] == 0:
        assert min(lengths) >= min(shortest, count)
        assert total_gain(boundaries, probabilities) == pytest.approx(-best[2], abs=1e-9)


def test_a_mask_that_allows_all_changes_nothing():
    probabilities = np.random.default_rng(0).random(200)
    for bounds in ({}, {"min_elements": 3}, {"min_elements": 2, "max_elements": 7}):
        np.testing.assert_array_equal(
            decode_boundaries(probabilities, **bounds, can_begin=np.ones(200, bool)),
            decode_boundaries(probabilities, **bounds),
        )


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(ValueError, match="can_begin: one per element, 3"):
        decode_boundaries([0.1, 0.2, 0.3], can_begin=np.ones(2, bool))


def test_without_bounds_a_segment_begins_above_the_threshold():
    probabilities = [0.9, 0.5, 0.51, 0.2, 1.0]
    assert decode_boundaries(probabilities).tolist() == [False, False, True, False, True]
    assert decode_boundaries(probabilities, threshold=0.1).tolist() == [
        False,
        True,
        True,
        True,
        True,
    ]
    assert decode_boundaries(probabilities, threshold=0.99).tolist() == [
        False,
        False,
        False,
        False,
        True,
    ]


def test_two_good_boundaries_beat_a_better_one_between_them():
    boundaries = decode_boundaries([0, 0.1, 0.9, 0.95, 0.9, 0.1], min_elements=2)
    assert boundaries_to_lengths(boundaries) == [2, 2, 2]


def test_a_segment_that_is_too_long_is_split_at_the_most_probable_gap():
    assert boundaries_to_lengths(
        decode_boundaries([0, 0.01, 0.2, 0.03, 0.01, 0.02], max_elements=4)
    ) == [2, 4]


def test_of_equally_good_segmentations_the_longest_last_segment_wins():
    assert boundaries_to_lengths(decode_boundaries([0.5] * 7, max_elements=3)) == [1, 3, 3]
    assert boundaries_to_lengths(decode_boundaries([0.5] * 7, min_elements=2)) == [7]


def test_bounds_overrule_certain_probabilities():
    assert boundaries_to_lengths(decode_boundaries([0, 1, 1, 1, 1], min_elements=2)) in (
        [2, 3],
        [3, 2],
    )
    assert boundaries_to_lengths(decode_boundaries([0, 0, 0, 0, 0], max_elements=2))[-1] == 2


def test_fewer_elements_than_the_minimum_are_one_segment():
    assert boundaries_to_lengths(decode_boundaries([0, 0.9, 0.9], min_elements=5)) == [3]
    assert boundaries_to_lengths(
        decode_boundaries([0, 0.9, 0.9], min_elements=5, max_elements=8)
    ) == [3]
    assert boundaries_to_lengths(decode_boundaries([0.7], min_elements=2)) == [1]


def test_a_long_document_satisfies_both_bounds():
    probabilities = np.random.default_rng(0).random(20_000)
    lengths = boundaries_to_lengths(
        decode_boundaries(probabilities, min_elements=5, max_elements=9)
    )
    assert min(lengths) == 5
    assert max(lengths) == 9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"min_elements": 3, "max_elements": 2},
            "got min_elements 3 and max_elements 2",
        ),
        ({"min_elements": 0}, "got min_elements 0"),
        ({"threshold": 0.0}, "threshold: from 0 to 1, both excluded"),
        ({"threshold": float("nan")}, "threshold"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        decode_boundaries([0.1, 0.2, 0.3], **settings)


@pytest.mark.parametrize("values", [[], [[0.5]], [0.5, 1.2], [0.1, float("nan")], [-0.1]])
def test_invalid_probabilities_are_refused(values):
    with pytest.raises(ValueError, match="probabilities"):
        decode_boundaries(values)
