"""A text cut into elements: nothing is lost, nothing is doubled, nothing but white space lies between."""

import textwrap
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.elements import spans

PIECES = st.sampled_from(
    ["Dr. ", "No. 7", "e.g. ", "...", "… ", ". ", "! ", "?” ", "“", "(", ")", "3.14", "。", "！", "\r\n", "\r", "\n",
     "\n\n", "\t", "\f", "\v", "\x85", "\u2028", " ", "\xa0", "a", "Word", "世界", "===", "# ", "- ", "1. ", "\ufeff",
     "''", "é", "\x1e", "I", "\0", "😀", "\ud800", "\u200b", "_", "\\", "`", "A. ", ".", "?", "word word word word. "]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=40).map("".join)


@pytest.mark.parametrize("unit", ["lines", "sentences"])
@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_elements_and_gaps_joined_are_the_text(unit, text):
    end = 0
    for start, stop in spans(text, unit):
        assert end <= start < stop
        assert not text[end:start].removeprefix("\ufeff" if end == 0 else "").strip()
        assert text[start:stop].strip() == text[start:stop]
        end = stop
    assert not text[end:].removeprefix("\ufeff" if end == 0 else "").strip()


@settings(max_examples=100, deadline=None)
@given(text=TEXTS, seed=st.integers(0, 9))
def test_pieces_of_any_segmentation_joined_are_the_text(text, seed):
    if not spans(text):
        return
    document = Document.of(text)
    pieces = document.pieces(np.random.default_rng(seed).random(len(document)) < 0.5)
    assert "".join(text[a:b] for a, b in pieces) == text


def test_lines_end_at_any_line_end():
    text = "\ufeffone\r\ntwo\rthree\n\n\tfour\ffive"
    assert [text[a:b] for a, b in spans(text, "lines")] == ["one", "two", "three", "four", "five"]


def test_a_wrapped_paragraph_reads_on_and_a_meant_break_does_not():
    text = (
        "A short title\n"
        "The first paragraph of this text is wrapped at about sixty\n"
        "characters, so that its sentences go over the ends of the\n"
        "lines. The next sentence is here as well.\n"
        "- an item of a list\n"
        "- another one\n"
    )
    found = [text[a:b].replace("\n", " ") for a, b in spans(text)]
    assert found[0] == "A short title"
    assert found[1].endswith("over the ends of the lines.")
    assert found[2:] == ["The next sentence is here as well.", "- an item of a list", "- another one"]


def test_lines_of_a_text_that_is_not_wrapped_are_read_one_by_one():
    verse = "walking down the road tonight\nnothing but the light\nof the moon\nand oh the river runs away\nfor ever"
    assert len(spans(verse)) == 5
    wrapped = textwrap.fill("some words of different lengths that somebody wrapped, " * 20, 50)
    assert len(spans(wrapped)) == 1


def test_a_heading_keeps_its_underline():
    text = "Title\n=====\nText."
    assert [text[a:b] for a, b in spans(text)] == ["Title\n=====", "Text."]


@pytest.mark.parametrize("piece", ["a", ".", ". ", "(", "\r", "\n\n", '"', "a.b", "Mr. ", "- ", "世。", "a\rb", "Ab\n"])
def test_the_time_grows_with_the_text_and_not_with_its_square(piece):
    def seconds(count):
        start = time.process_time()
        spans(piece * count)
        return time.process_time() - start

    few = min(seconds(5_000) for _ in range(3))
    assert seconds(40_000) < 30 * max(few, 0.005)   # 8 times as many; 64 times as long if it were the square
