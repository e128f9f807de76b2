"""Normalized names, file names, and the closest known name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.names import find_closest, normalize_name, suggest_name, to_snake_case
from tests.cpu_time import limit_cpu_time

KNOWN = [
    "Dense",
    "Dropout",
    "Embedding",
    "LayerNormalization",
    "MultiHeadAttention",
    "TransformerEncoder",
    "TransformerDecoder",
]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("TransformerEncoder", "transformer_encoder"),
        ("Conv2D", "conv2d"),
        ("LSTM", "lstm"),
        ("None_", "none"),
        ("GlobalAveragePooling1D", "global_average_pooling1d"),
        ("AdamW", "adam_w"),
        ("Self", "self"),
        ("RMSNormalization", "rms_normalization"),
    ],
)
def test_a_class_name_as_a_file_name(name, file):
    assert to_snake_case(name) == file
    assert normalize_name(to_snake_case(name)) == normalize_name(name)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("Dence", "Dense"),
        ("dense", "Dense"),
        ("TransformerEncodr", "TransformerEncoder"),
        ("transformer_encoder", "TransformerEncoder"),
        ("Transformer", "TransformerDecoder"),
        ("DropOut", "Dropout"),
        ("Embeding", "Embedding"),
        ("LayerNorm", "LayerNormalization"),
        ("MultiheadAttention", "MultiHeadAttention"),
        ("Quux", None),
        ("", None),
        ("_", None),
        ("x" * 1000, None),
    ],
)
def test_the_closest_known_name_is_found(typed, expected):
    assert find_closest(typed, KNOWN) == expected


def test_without_known_names_nothing_is_suggested():
    assert find_closest("Dense", []) is None
    assert suggest_name("Dense", []) is None


def test_a_suggestion_is_a_help_line():
    assert suggest_name("Dence", KNOWN) == "did you mean `Dense`?"


def test_a_long_name_is_rejected_quickly():
    with limit_cpu_time():
        assert find_closest("a" * 10**6, KNOWN * 100) is None


@given(st.text(max_size=80))
def test_any_text_gives_a_known_name_or_none(typed):
    assert find_closest(typed, KNOWN) in {*KNOWN, None}
