"""Headings, and titles for parts that have none."""

import pytest

from neural.tasks.cutting.headings import WIDEST_TITLE, begins_item, is_numbered, is_underline, likeness, title


@pytest.mark.parametrize("line", ["2.1 Methods", "IV. Results", "Chapter 7: The End", "3) Aims"])
def test_a_numbered_heading_is_seen(line):
    assert is_numbered(line)


@pytest.mark.parametrize("line", ["2.1 is a number.", "1990 was a year", "Methods", "I saw it", "12 apples and pears."])
def test_a_sentence_is_no_numbered_heading(line):
    assert not is_numbered(line)


def test_a_heading_looks_more_like_one_than_a_sentence():
    assert likeness("# Anything at all.") == 1
    assert likeness("Early Life and Work") > likeness("and then some more words") > likeness("He went home again.") == 0


def test_underlines_and_items():
    assert is_underline("=====") and is_underline("---") and not is_underline("--") and not is_underline("==a==")
    assert begins_item("- one") and begins_item("(a) one") and begins_item("12. one") and not begins_item("one - two")


def test_a_title_is_the_heading_without_its_mark():
    assert title(["## Early  life ##", "He was born."]) == "Early life"


def test_a_long_first_line_is_cut_between_words():
    made = title(["word " * 40])
    assert made.endswith("word…") and len(made) <= WIDEST_TITLE


def test_a_title_needs_a_letter():
    assert title(["***", "Then"]) == "Then"
    assert title(["***"]) == "***"
