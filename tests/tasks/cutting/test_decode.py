"""Decoding finds the best segmentation within the limits: compared with trying all of them."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.tasks.cutting.decode import decode, log_odds
from neural.tasks.cutting.masses import masses
from tests.tasks.cutting.segmentations import quickly

P = st.lists(st.floats(0, 1), min_size=1, max_size=9)


def worth(boundaries, probabilities, threshold=0.5) -> float:
    """What the boundaries gain together."""
    gains = log_odds(probabilities) - log_odds([threshold])
    return float(gains[np.flatnonzero(boundaries)].sum())


def compositions(whole, least, most):
    """Every way to write a number as parts of `least` to `most`, in every order."""
    if least <= whole <= most:
        yield (whole,)
    for first in range(least, min(most, whole - 1) + 1):
        yield from ((first, *rest) for rest in compositions(whole - first, least, most))


def best_of_all(probabilities, least, most, threshold=0.5) -> float | None:
    """The most that can be gained; None where nothing keeps the limits."""
    gains = (log_odds(probabilities) - log_odds([threshold])).tolist()
    fitting = compositions(len(gains), least, most)
    return max((sum(gains[at] for at in accumulate(one[:-1])) for one in fitting), default=None)


@quickly
@given(P, st.integers(1, 4), st.integers(0, 4), st.sampled_from([0.1, 0.5, 0.8]))
def test_no_other_segmentation_within_the_limits_is_better(probabilities, least, more, threshold):
    best = best_of_all(probabilities, least, least + more, threshold)
    made = decode(probabilities, least=least, most=least + more, threshold=threshold)
    if best is not None:
        assert all(least <= mass <= least + more for mass in masses(made))
        assert worth(made, probabilities, threshold) == pytest.approx(best, abs=1e-9)
    else:
        assert max(masses(made)) <= least + more, "the most is kept"
        lowered = [one for one in range(least, 0, -1) if best_of_all(probabilities, one, least + more) is not None]
        assert min(masses(made)) >= lowered[0], "the least gives way as little as it can"


@quickly
@given(P, st.integers(1, 9))
def test_without_a_most_only_short_parts_are_ruled_out(probabilities, least):
    made = decode(probabilities, least=least)
    allowed = min(least, len(probabilities))
    assert min(masses(made)) >= allowed
    assert worth(made, probabilities) == pytest.approx(best_of_all(probabilities, allowed, 99), abs=1e-9)


def test_without_limits_a_part_begins_above_the_threshold():
    probabilities = [0.9, 0.5, 0.51, 0.2, 1.0]
    assert decode(probabilities).tolist() == [False, False, True, False, True]
    assert decode(probabilities, threshold=0.1).tolist() == [False, True, True, True, True]
    assert decode(probabilities, threshold=0.99).tolist() == [False, False, False, False, True]


def test_two_good_cuts_beat_a_better_one_between_them():
    made = decode([0, 0.1, 0.9, 0.95, 0.9, 0.1], least=2)
    assert masses(made) == [2, 2, 2]


def test_a_part_that_is_too_long_is_cut_where_it_hurts_least():
    assert masses(decode([0, 0.01, 0.2, 0.03, 0.01, 0.02], most=4)) == [2, 4]


def test_equally_good_ones_leave_the_longest_last_part():
    assert masses(decode([0.5] * 7, most=3)) == [1, 3, 3]
    assert masses(decode([0.5] * 7, least=2)) == [7]


def test_certainty_gives_way_to_a_limit():
    assert masses(decode([0, 1, 1, 1, 1], least=2)) in ([2, 3], [3, 2])
    assert masses(decode([0, 0, 0, 0, 0], most=2))[-1] == 2


def test_fewer_elements_than_a_part_must_have_are_one_part():
    assert masses(decode([0, 0.9, 0.9], least=5)) == [3]
    assert masses(decode([0, 0.9, 0.9], least=5, most=8)) == [3]
    assert masses(decode([0.7], least=2)) == [1]


def test_a_long_document_keeps_both_limits():
    probabilities = np.random.default_rng(0).random(20_000)
    lengths = masses(decode(probabilities, least=5, most=9))
    assert min(lengths) == 5
    assert max(lengths) == 9


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"least": 3, "most": 2}, "got least 3 and most 2"),
        ({"least": 0}, "got least 0"),
        ({"threshold": 0.0}, "threshold: from 0 to 1, neither"),
        ({"threshold": float("nan")}, "threshold"),
    ],
)
def test_limits_that_nothing_can_keep_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        decode([0.1, 0.2, 0.3], **settings)


@pytest.mark.parametrize("wrong", [[], [[0.5]], [0.5, 1.2], [0.1, float("nan")], [-0.1]])
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ValueError, match="probabilities"):
        decode(wrong)
