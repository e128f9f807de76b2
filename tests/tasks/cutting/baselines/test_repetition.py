"""A line that comes again is chorus."""

from neural.tasks.cutting.baselines.repetition import Repetition
from neural.tasks.cutting.masses import masses

VERSE = ["the first", "another thing", "a third one", "something else", "fifth of all"]
OTHER = ["what now", "who knows", "not this one", "nor that one", "all different"]
CHORUS = ["la la la", "we sing", "we sing along", "oh my"]


def test_a_chorus_is_found_by_its_return():
    assert masses(Repetition().boundaries([*VERSE, *CHORUS, *OTHER, *CHORUS])) == [5, 4, 5, 4]


def test_case_and_punctuation_do_not_matter():
    loud = [f"{one.upper()}!" for one in CHORUS]
    assert masses(Repetition().boundaries([*VERSE, *CHORUS, *OTHER, *loud])) == [5, 4, 5, 4]


def test_a_single_line_that_repeats_is_outvoted():
    assert masses(Repetition().boundaries([*VERSE, VERSE[0], *OTHER])) == [11]
    assert len(masses(Repetition(smoothed=1).boundaries([*VERSE, VERSE[0], *OTHER]))) == 4


def test_empty_lines_are_no_chorus():
    assert masses(Repetition().boundaries([*VERSE, "", "", "", "", ""])) == [10]
