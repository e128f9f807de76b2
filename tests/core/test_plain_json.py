"""JSON that anybody may have written."""

import pytest

from neural.core.plain_json import read_json


@pytest.mark.parametrize("text", ["", "{", "[1,]", "[" * 100_000, "1" * 5000, '"\\ud8"', "\x00"])
def test_whatever_is_wrong_is_one_kind_of_error(text):
    with pytest.raises(ValueError):
        read_json(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (r'"a\ud83d\ude42b"', "a🙂b"), (r'"\ud83d"', "�"), (r'"\uDE42\ud83d"', "��"), (r'"\ud83d\ud83d\ude42"', "�🙂"),
        (r'"\\ud83d"', "\\ud83d"), (r'"\\\ud83d"', "\\�"), (r'"\u0041\n"', "A\n"),
    ],
)  # fmt: skip
def test_half_a_character_becomes_one_that_can_be_written(text, says):
    assert read_json(text) == says
    read_json(text).encode()
