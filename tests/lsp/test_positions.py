"""Offsets ↔ positions as editors count them, in UTF-8, UTF-16 and UTF-32."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.diagnostics import SourceSpan
from neural.lsp.positions import TextPositions

TEXT = "слой 🧠🧠 Dense\r\nтут\nx"


@pytest.mark.parametrize(("encoding", "column"), [("utf-16", 10), ("utf-8", 18), ("utf-32", 8)])
def test_characters_are_counted_in_the_negotiated_encoding(encoding, column):
    positions = TextPositions(TEXT, encoding)
    assert positions.to_line_character(TEXT.index("Dense")) == (0, column)
    assert positions.to_offset(0, column) == TEXT.index("Dense")


def test_an_emoji_has_two_utf_16_units():
    assert TextPositions(TEXT).to_range(SourceSpan(5, 6)) == ((0, 5), (0, 7))


def test_a_position_inside_a_character_is_its_start():
    assert TextPositions(TEXT).to_offset(0, 6) == 5


def test_all_line_endings_are_recognized():
    assert [
        TextPositions("a\nb\r\nc\rd").to_line_character(offset)[0] for offset in (0, 2, 5, 7)
    ] == [0, 1, 2, 3]


def test_positions_past_the_end_are_clipped():
    positions = TextPositions(TEXT)
    assert positions.to_offset(99, 0) == len(TEXT)
    assert positions.to_offset(2, 99) == len(TEXT)
    assert positions.to_offset(1, 99) == TEXT.index("\nx")


@given(
    st.text(st.sampled_from("aя🧠\n\r\u2028"), max_size=12),
    st.sampled_from(["utf-8", "utf-16", "utf-32"]),
)
def test_conversion_there_and_back_is_the_identity(text, encoding):
    positions = TextPositions(text, encoding)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] != "\r\n":  # no position is between the two
            assert positions.to_offset(*positions.to_line_character(offset)) == offset
