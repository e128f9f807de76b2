"""The search finds the best segmentation, also while the sequence grows: compared with enumeration."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.tasks.segmentation.segment_search import SegmentSearch
from tests.tasks.segmentation.segmentations import quick_settings


@st.composite
def draw_problems(draw, max_count=8):
    """Gains, forbidden boundaries, and the limits of every end."""
    count = draw(st.integers(1, max_count))
    # few different gains, so that there are ties
    gains = draw(
        st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 3.0]), min_size=count, max_size=count)
    )
    is_forbidden = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    if draw(st.booleans()):  # limits on the number of units
        longest = draw(st.integers(2, 9))
        ends, shortest = np.arange(count), draw(st.integers(1, longest))
        lows, highs = np.maximum(ends - longest + 1, 0), ends - shortest + 1
        return np.array(gains), np.array(is_forbidden), lows, highs
    lows = np.maximum.accumulate([draw(st.integers(0, end)) for end in range(count)])
    highs = np.maximum.accumulate([draw(st.integers(-1, end)) for end in range(count)])
    return np.array(gains), np.array(is_forbidden), lows, highs


def list_paths(lows):
    """All possible segmentations, as lists of segments."""
    count = len(lows)
    for gaps in product((False, True), repeat=count - 1):
        edges = [0, *(index + 1 for index, is_cut in enumerate(gaps) if is_cut), count]
        path = list(pairwise(edges))
        if all(start >= lows[end - 1] for start, end in path):
            yield path


def rate(path, gains, is_forbidden, highs):
    """The order of segmentations; ties go to the longest last segments."""
    starts = [start for start, _ in path[1:]]
    return (
        sum(is_forbidden[start] for start in starts),
        sum(start > highs[end - 1] for start, end in path),
        -sum(gains[start] for start in starts),
        [start for start, _ in reversed(path)],
    )


@quick_settings
@given(draw_problems())
def test_no_possible_segmentation_is_better(problem):
    gains, is_forbidden, lows, highs = problem
    search = SegmentSearch()
    search.push(gains, is_forbidden, lows, highs)
    best = min(list_paths(lows), key=lambda path: rate(path, gains, is_forbidden, highs))
    assert search.find_path(is_final=True) == best


@settings(max_examples=500, deadline=None)
@given(draw_problems(max_count=40), st.lists(st.integers(1, 4), min_size=40, max_size=40))
def test_a_growing_sequence_has_the_same_result_and_nothing_changes_that_was_final(problem, sizes):
    search, whole = SegmentSearch(), SegmentSearch()
    whole.push(*problem)
    path, first = [], 0
    for size in sizes:
        search.push(*(values[first : first + size] for values in problem))
        first += size
        final = search.find_path(is_final=False)
        path += final
        if final:
            search.commit(final[-1][1])
    assert path + search.find_path(is_final=True) == whole.find_path(is_final=True)


@quick_settings
@given(draw_problems(), st.data())
def test_excluded_segments_are_not_used(problem, data):
    gains, is_forbidden, lows, highs = problem
    search = SegmentSearch()
    search.push(*problem)
    long_segments = [span for span in search.find_path(is_final=True) if span[1] - span[0] > 1]
    if not long_segments:
        return
    excluded = data.draw(st.lists(st.sampled_from(long_segments), min_size=1))
    search.exclude(excluded)
    for start, end in excluded:
        lows = np.array(
            [max(low, start + 1) if index >= end - 1 else low for index, low in enumerate(lows)]
        )
    best = min(list_paths(lows), key=lambda path: rate(path, gains, is_forbidden, highs))
    assert search.find_path(is_final=True) == best


def test_a_segment_of_one_unit_cannot_be_excluded():
    search = SegmentSearch()
    search.push([0.0], [False], [0], [0])
    with pytest.raises(ValueError, match="one unit"):
        search.exclude([(0, 1)])


def test_segments_are_final_soon():
    """A clear boundary ends all that is before it, so little is kept."""
    search = SegmentSearch()
    gains = np.where(np.arange(1000) % 10 == 0, 5.0, -5.0)
    ends = np.arange(1000)
    search.push(gains, np.zeros(1000, bool), np.maximum(ends - 24, 0), ends)
    path = search.find_path(is_final=False)
    assert path[:3] == [(0, 10), (10, 20), (20, 30)]
    assert path[-1][1] >= 970
