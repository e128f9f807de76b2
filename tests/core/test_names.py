"""Names: one spelling from another, and what a misspelt one was meant to be."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.names import closest, did_you_mean, key, snake

KNOWN = [
    "Dense", "Dropout", "Embedding", "LayerNormalization", "MultiHeadAttention", "TransformerEncoder",
    "TransformerDecoder",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("TransformerEncoder", "transformer_encoder"), ("Conv2D", "conv2d"), ("LSTM", "lstm"), ("None_", "none"),
        ("GlobalAveragePooling1D", "global_average_pooling1d"), ("AdamW", "adam_w"), ("Self", "self"),
        ("RMSNormalization", "rms_normalization"),
    ],
)  # fmt: skip
def test_a_class_name_as_a_file_name(name, file):
    assert snake(name) == file
    assert key(snake(name)) == key(name)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Dence", "Dense"), ("dense", "Dense"), ("TransformerEncodr", "TransformerEncoder"),
        ("transformer_encoder", "TransformerEncoder"), ("Transformer", "TransformerDecoder"), ("DropOut", "Dropout"),
        ("Embeding", "Embedding"), ("LayerNorm", "LayerNormalization"),
        ("MultiheadAttention", "MultiHeadAttention"), ("Quux", None), ("", None), ("_", None), ("x" * 1000, None),
    ],
)  # fmt: skip
def test_the_closest_name_is_what_was_meant(typed, meant):
    assert closest(typed, KNOWN) == meant


def test_nothing_is_close_to_nothing_known():
    assert closest("Dense", []) is None
    assert did_you_mean("Dense", []) is None


def test_the_help_line():
    assert did_you_mean("Dence", KNOWN) == "did you mean `Dense`?"


def test_long_junk_costs_no_time():
    started = time.perf_counter()
    assert closest("a" * 10**6, KNOWN * 100) is None
    assert time.perf_counter() - started < 0.5


@given(st.text(max_size=80))
def test_any_text_gives_a_known_name_or_none(typed):
    assert closest(typed, KNOWN) in {*KNOWN, None}
