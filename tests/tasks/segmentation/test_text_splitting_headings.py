"""Headings, and titles of segments."""

import pytest

from neural.tasks.segmentation.line_wrapping import is_heading_underline, is_list_item
from neural.tasks.segmentation.text_splitting import (
    MAX_TITLE_CHARACTERS,
    is_numbered_heading,
    make_title,
    score_heading,
)


@pytest.mark.parametrize("line", ["2.1 Methods", "IV. Results", "Chapter 7: The End", "3) Aims"])
def test_a_numbered_heading_is_detected(line):
    assert is_numbered_heading(line)


@pytest.mark.parametrize(
    "line", ["2.1 is a number.", "1990 was a year", "Methods", "I saw it", "12 apples and pears."]
)
def test_a_sentence_is_not_a_numbered_heading(line):
    assert not is_numbered_heading(line)


def test_a_heading_looks_more_like_one_than_a_sentence():
    assert score_heading("# Anything at all.") == 1
    assert (
        score_heading("Early Life and Work")
        > score_heading("and then some more words")
        > score_heading("He went home again.")
        == 0
    )


def test_underlines_and_list_items_are_detected():
    assert (
        is_heading_underline("=====")
        and is_heading_underline("---")
        and not is_heading_underline("--")
        and not is_heading_underline("==a==")
    )
    assert (
        is_list_item("- one")
        and is_list_item("(a) one")
        and is_list_item("12. one")
        and not is_list_item("one - two")
    )


def test_a_title_is_the_heading_without_its_mark():
    assert make_title(["## Early  life ##", "He was born."]) == "Early life"


def test_a_long_title_is_truncated_between_words():
    title = make_title(["word " * 40])
    assert title.endswith("word…") and len(title) <= MAX_TITLE_CHARACTERS


def test_a_title_needs_a_letter():
    assert make_title(["***", "Then"]) == "Then"
    assert make_title(["***"]) == "***"
