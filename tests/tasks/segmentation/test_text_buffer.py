"""A window of a text: slices by positions in the full text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.tasks.segmentation.text_buffer import TextBuffer
from tests.tasks.segmentation.segmentations import quick_settings


@quick_settings
@given(st.lists(st.text("abc", max_size=5)), st.data())
def test_slices_are_those_of_the_full_text(parts, data):
    buffer, text = TextBuffer(), ""
    for part in parts:
        buffer.append(part)
        text += part
        dropped = data.draw(st.integers(0, len(text)))
        buffer.drop_before(dropped)
        assert buffer.end == len(text)
        assert buffer.start <= max(dropped, buffer.start)
        start = data.draw(st.integers(buffer.start, len(text)))
        end = data.draw(st.integers(start, len(text)))
        assert buffer.slice(start, end) == text[start:end]


def test_what_was_dropped_cannot_be_read():
    buffer = TextBuffer()
    for part in ("one ", "two ", "three"):
        buffer.append(part)
    buffer.drop_before(9)
    assert (buffer.start, buffer.slice(8, 13)) == (8, "three")
    with pytest.raises(ValueError, match="before 8 was dropped"):
        buffer.slice(7, 9)
