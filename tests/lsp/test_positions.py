"""Places as editors count them: UTF-16 units, whatever stands before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.diagnostics import Where
from neural.lsp.positions import Positions

TEXT = "слой 🧠🧠 Dense\r\nтут\nx"


@pytest.mark.parametrize(("units", "column"), [("utf-16", 10), ("utf-8", 18), ("utf-32", 8)])
def test_letters_before_a_word_are_counted_in_the_units_agreed_on(units, column):
    positions = Positions(TEXT, units)
    assert positions.place(TEXT.index("Dense")) == (0, column)
    assert positions.offset(0, column) == TEXT.index("Dense")


def test_a_stretch_of_an_emoji_has_two_units():
    assert Positions(TEXT).span(Where(5, 6)) == ((0, 5), (0, 7))


def test_a_place_inside_a_letter_is_its_start():
    assert Positions(TEXT).offset(0, 6) == 5


def test_every_way_to_end_a_line_ends_one():
    assert [Positions("a\nb\r\nc\rd").place(offset)[0] for offset in (0, 2, 5, 7)] == [0, 1, 2, 3]


def test_behind_the_end_is_the_end():
    positions = Positions(TEXT)
    assert positions.offset(99, 0) == len(TEXT)
    assert positions.offset(2, 99) == len(TEXT)
    assert positions.offset(1, 99) == TEXT.index("\nx")


@given(st.text(st.sampled_from("aя🧠\n\r\u2028"), max_size=12), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_there_and_back_again(text, units):
    positions = Positions(text, units)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] != "\r\n":   # between the two is no place
            assert positions.offset(*positions.place(offset)) == offset
