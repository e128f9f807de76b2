"""Tokenizers of all kinds count tokens; broken ones are messages."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neural.core.errors import TaskError
from neural.tasks.segmentation.token_counting import make_token_counter
from tests.tasks.segmentation.segmentations import quick_settings

TEXT = "One two, three"


@quick_settings
@given(st.text("ab \n\u3000中ไ𠀀。\ud800"), st.sampled_from(["words", "chars"]), st.data())
def test_running_counts_equal_those_of_the_parts(text, name, data):
    counter = make_token_counter(name)
    positions = np.unique(data.draw(st.lists(st.integers(0, len(text)), min_size=2)))
    ends, starts = counter.measure(text, positions)
    for low in range(len(positions)):
        for high in range(low + 1, len(positions)):
            part = text[positions[low] : positions[high]]
            assert ends[high] - starts[low] == counter.count(part)
    assert (np.diff(ends) >= 0).all() and (np.diff(starts) >= 0).all()


def test_words_and_characters_are_counted():
    assert make_token_counter("words").count(TEXT) == 3
    assert make_token_counter("chars").count(TEXT) == 14
    assert make_token_counter("words").count_many(["a", "b c"]) == [1, 2]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("港口六点开放。", 7),
        ("ひらがなとカタカナ", 9),
        ("ภาษาไทย", 7),
        ("ភាសាខ្មែរ", 9),
        ("𠀀𠀁", 2),
        ("한국어 단어", 2),
        ("PyTorch张量 and 2.0版", 6),
    ],
)
def test_characters_of_scripts_without_spaces_are_words(text, count):
    assert make_token_counter("words").count(text) == count


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (len, 14),
        (str.split, 3),
        (lambda text: np.array([1, 2]), 2),
        (lambda text: np.int64(5), 5),
        (lambda text: len(text) / 4, 4),  # rounded up
        (lambda text: {"input_ids": [1, 2, 3]}, 3),
        (lambda text: 0, 0),
    ],
)
def test_a_function_returns_a_number_or_a_sequence(function, count):
    assert make_token_counter(function).count(TEXT) == count


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (-1, "-1"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        ("text", "'text'"),
        (True, "True"),
        (object, "<class 'object'>"),
    ],
)
def test_a_function_that_returns_no_count_is_an_error(value, shown):
    with pytest.raises(TaskError, match=f"returned {shown} for a text of 14 characters"):
        make_token_counter(lambda text: value).count(TEXT)


def test_a_function_that_fails_is_an_error():
    def divide(text):
        return len(text) / 0

    with pytest.raises(TaskError, match=r"tokenizer divide failed .* ZeroDivisionError"):
        make_token_counter(divide).count(TEXT)


class Encoder:
    """Has `encode`, as the tokenizers of sentencepiece."""

    def encode(self, text):
        return text.split()


class OrdinaryEncoder(Encoder):
    """As the encodings of tiktoken, whose `encode` refuses the names of special tokens."""

    def encode(self, text):
        raise ValueError("special token")

    def encode_ordinary(self, text):
        return list(text)


def test_objects_that_encode_are_tokenizers():
    assert make_token_counter(Encoder()).count(TEXT) == 3
    assert make_token_counter(OrdinaryEncoder()).count("<|endoftext|>") == 13


@pytest.fixture
def tokenizer_file(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"One": 0, "[UNK]": 1}, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=50)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_a_tokenizer_file_counts_all_tokens_without_truncation_and_padding(tokenizer_file):
    for source in (tokenizer_file, str(tokenizer_file), tokenizer_file.parent):
        counter = make_token_counter(source)
        assert counter.count(TEXT) == 4
        assert counter.count_many([TEXT, "One"]) == [4, 1]


def test_a_tokenizer_object_is_not_changed(tokenizer_file):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    assert make_token_counter(tokenizer).count(TEXT) == 4
    assert tokenizer.truncation["max_length"] == 2


def test_a_tokenizer_of_transformers_is_accepted(tokenizer_file):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tokenizer_file), model_max_length=3
    )
    assert make_token_counter(tokenizer).count(TEXT * 5) == 16


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ("gone.json", "there is no tokenizer `gone.json`"),
        ("tokens", "there is no tokenizer `tokens`: give `words`, `chars` or the path"),
        (5, "5 is not a tokenizer"),
    ],
)
def test_what_is_no_tokenizer_is_an_error(tokenizer, message):
    with pytest.raises(TaskError, match=message):
        make_token_counter(tokenizer)


def test_a_broken_tokenizer_file_is_an_error(tmp_path):
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(TaskError, match="is not a file of the package `tokenizers`"):
        make_token_counter(path)
