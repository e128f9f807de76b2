"""Baseline of repeated lines: a repeated line is chorus."""

from neural.tasks.segmentation.baselines.repetition import Repetition
from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths

VERSE = ["the first", "another thing", "a third one", "something else", "fifth of all"]
OTHER = ["what now", "who knows", "not this one", "nor that one", "all different"]
CHORUS = ["la la la", "we sing", "we sing along", "oh my"]


def test_a_chorus_is_found_by_its_repetition():
    boundaries = Repetition().predict([*VERSE, *CHORUS, *OTHER, *CHORUS])
    assert boundaries_to_lengths(boundaries) == [5, 4, 5, 4]


def test_case_and_punctuation_do_not_matter():
    loud = [f"{line.upper()}!" for line in CHORUS]
    boundaries = Repetition().predict([*VERSE, *CHORUS, *OTHER, *loud])
    assert boundaries_to_lengths(boundaries) == [5, 4, 5, 4]


def test_a_single_repeated_line_is_smoothed_away():
    lines = [*VERSE, VERSE[0], *OTHER]
    assert boundaries_to_lengths(Repetition().predict(lines)) == [11]
    assert len(boundaries_to_lengths(Repetition(smoothing_window=1).predict(lines))) == 4


def test_empty_lines_are_not_repetitions():
    assert boundaries_to_lengths(Repetition().predict([*VERSE, "", "", "", "", ""])) == [10]
