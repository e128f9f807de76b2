"""Parsing of untrusted JSON."""

import pytest

from neural.core.json_values import parse_json


@pytest.mark.parametrize("text", ["", "{", "[1,]", "[" * 100_000, "1" * 5000, '"\\ud8"', "\x00"])
def test_every_defect_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"a\ud83d\ude42b"', "a🙂b"),
        (r'"\ud83d"', "�"),
        (r'"\uDE42\ud83d"', "��"),
        (r'"\ud83d\ud83d\ude42"', "�🙂"),
        (r'"\\ud83d"', "\\ud83d"),
        (r'"\\\ud83d"', "\\�"),
        (r'"\u0041\n"', "A\n"),
    ],
)
def test_a_lone_surrogate_becomes_the_replacement_character(text, expected):
    assert parse_json(text) == expected
    parse_json(text).encode()
