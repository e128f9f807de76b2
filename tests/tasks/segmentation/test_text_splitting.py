"""Splitting a text into elements: nothing is lost or doubled; only white space is between."""

import textwrap
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.text_splitting import find_elements

SNIPPETS = st.sampled_from(
    [
        "Dr. ",
        "No. 7",
        "e.g. ",
        "...",
        "… ",
        ". ",
        "! ",
        "?” ",
        "“",
        "(",
        ")",
        "3.14",
        "。",
        "！",
        "\r\n",
        "\r",
        "\n",
        "\n\n",
        "\t",
        "\f",
        "\v",
        "\x85",
        "\u2028",
        " ",
        "\xa0",
        "a",
        "Word",
        "世界",
        "===",
        "# ",
        "- ",
        "1. ",
        "\ufeff",
        "''",
        "é",
        "\x1e",
        "I",
        "\0",
        "😀",
        "\ud800",
        "\u200b",
        "_",
        "\\",
        "`",
        "A. ",
        ".",
        "?",
        "word word word word. ",
    ]
)
TEXTS = st.lists(SNIPPETS, max_size=40).map("".join)


@pytest.mark.parametrize("unit", ["lines", "sentences"])
@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_elements_and_gaps_joined_are_the_text(unit, text):
    end = 0
    for start, stop in find_elements(text, unit):
        assert end <= start < stop
        assert not text[end:start].removeprefix("\ufeff" if end == 0 else "").strip()
        assert text[start:stop].strip() == text[start:stop]
        end = stop
    assert not text[end:].removeprefix("\ufeff" if end == 0 else "").strip()


@settings(max_examples=100, deadline=None)
@given(text=TEXTS, seed=st.integers(0, 9))
def test_segments_of_any_segmentation_join_to_the_text(text, seed):
    if not find_elements(text):
        return
    document = SegmentationDocument.from_text(text)
    spans = document.segment_spans(np.random.default_rng(seed).random(len(document)) < 0.5)
    assert "".join(text[start:end] for start, end in spans) == text


def test_lines_end_at_any_line_end():
    text = "\ufeffone\r\ntwo\rthree\n\n\tfour\ffive"
    lines = [text[start:end] for start, end in find_elements(text, "lines")]
    assert lines == ["one", "two", "three", "four", "five"]


def test_wrapped_lines_are_joined_and_hard_breaks_are_kept():
    text = (
        "A short title\n"
        "The first paragraph of this text is wrapped at about sixty\n"
        "characters, so that its sentences go over the ends of the\n"
        "lines. The next sentence is here as well.\n"
        "- an item of a list\n"
        "- another one\n"
    )
    elements = [text[start:end].replace("\n", " ") for start, end in find_elements(text)]
    assert elements[0] == "A short title"
    assert elements[1].endswith("over the ends of the lines.")
    assert elements[2:] == [
        "The next sentence is here as well.",
        "- an item of a list",
        "- another one",
    ]


def test_lines_of_an_unwrapped_text_are_separate_elements():
    verse = (
        "walking down the road tonight\nnothing but the light\nof the moon\n"
        "and oh the river runs away\nfor ever"
    )
    assert len(find_elements(verse)) == 5
    wrapped = textwrap.fill("some words of different lengths that somebody wrapped, " * 9, 50)
    assert len(find_elements(wrapped)) == 1


def test_a_heading_keeps_its_underline():
    text = "Title\n=====\nText."
    assert [text[start:end] for start, end in find_elements(text)] == ["Title\n=====", "Text."]


@pytest.mark.parametrize(
    "snippet", ["a", ".", ". ", "(", "\r", "\n\n", '"', "a.b", "Mr. ", "- ", "世。", "a\rb", "Ab\n"]
)
def test_the_time_is_linear_in_the_text(snippet):
    def measure_seconds(count):
        start = time.process_time()
        find_elements(snippet * count)
        return time.process_time() - start

    # 8 times as long a text takes 8 times as long; 64 times if it were quadratic
    short_seconds = min(measure_seconds(5_000) for _ in range(3))
    long_seconds = min(measure_seconds(40_000) for _ in range(3))
    assert long_seconds < 30 * max(short_seconds, 0.005)


def test_a_long_text_in_lower_case_is_divided_at_its_full_stops():
    sentences = [
        "the map is kept in memory for as long as the block is open, which is not always wanted.",
        "opaque is a custom operator of the library with the semantics of another kernel, e.g. flash.",
        "it cannot be opened by the watcher without help from mr. smith or from whoever wrote it.",
        "see the notes of prof. jones on the cost of all of this in a long run of many layers.",
        "and that was all that the others in the chat had to say about it at the end of the day.",
    ]
    text = " ".join(sentences)
    assert [text[start:end] for start, end in find_elements(text)] == sentences
