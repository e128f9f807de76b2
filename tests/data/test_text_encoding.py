"""Characters → token ids by a fixed table."""

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.text_encoding import ASCII_CHARACTERS, Alphabet, select_alphabet
from tests.tasks.networks import DENSE, build_network


def text_network(ids, pad=None):
    padded = "" if pad is None else f", pad_id={pad}"
    return build_network(
        "(9,)",
        f'Embedding(input_dim={ids}, output_dim=4{padded}) | Output(2, activation="softmax")',
    )


@pytest.mark.parametrize(
    ("ids", "pad", "count"),
    [
        (96, None, 96),
        (97, 0, 96),
        (97, 96, 96),
        (255, None, 96),
        (256, None, 256),
        (256, 0, 96),
        (257, 0, 256),
        (300, 299, 256),
    ],
)
def test_enough_ids_are_read_as_bytes_fewer_as_characters(ids, pad, count):
    assert select_alphabet(text_network(ids, pad), "d") == Alphabet(count, pad)


@pytest.mark.parametrize(("ids", "pad", "needed"), [(95, None, 96), (96, 0, 97), (96, 50, 97)])
def test_too_few_ids_are_refused_with_the_needed_number(ids, pad, needed):
    message = f"d: text needs {needed} ids, but `Embedding` has {ids}; write `input_dim={needed}`"
    with pytest.raises(TaskError, match=message):
        select_alphabet(text_network(ids, pad), "d")


def test_a_network_that_takes_features_cannot_read_text():
    with pytest.raises(TaskError, match="text is read as token ids, but Small takes features"):
        select_alphabet(DENSE, "d")


def test_every_character_has_an_id_different_from_the_padding():
    for pad in (None, 0, 5, 96, 200):
        ids = Alphabet(96, pad).encode(ASCII_CHARACTERS)
        assert len(set(ids.tolist())) == 96
        assert pad not in ids.tolist()
        tokens = Alphabet(96, pad).tokens
        assert [tokens[token_id] for token_id in ids[1:4]] == ["␣", "!", '"']
        assert tokens[ids[0]] == "⏎"


def test_other_characters_become_question_marks_and_are_counted():
    alphabet = Alphabet(96, None)
    text = "né\r\n→\t☃"
    assert alphabet.encode(text).tolist() == alphabet.encode("n?\n???").tolist()
    assert alphabet.count_unknown(text) == 4
    assert alphabet.count_unknown("plain\r\ntext\n") == 0


def test_byte_ids_encode_any_language():
    alphabet = Alphabet(256, 0)
    ids = alphabet.encode("né→")
    assert bytes((ids - 1).astype(np.uint8)).decode() == "né→"
    assert alphabet.count_unknown("né→") == 0
    assert len(alphabet.tokens) == 257
