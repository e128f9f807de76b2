"""Characters and ids: one table for every text and every run."""

import numpy as np
import pytest

from neural.tasks.data.alphabet import CHARACTERS, Alphabet, alphabet_of
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE, made


def reader(ids, pad=None):
    padded = "" if pad is None else f", pad_id={pad}"
    return made("(9,)", f'Embedding(input_dim={ids}, output_dim=4{padded}) | Output(2, activation="softmax")')


@pytest.mark.parametrize(
    ("ids", "pad", "count"),
    [
        (96, None, 96), (97, 0, 96), (97, 96, 96), (255, None, 96),
        (256, None, 256), (256, 0, 96), (257, 0, 256), (300, 299, 256),
    ],
)  # fmt: skip
def test_enough_ids_are_read_as_bytes_fewer_as_characters(ids, pad, count):
    assert alphabet_of(reader(ids, pad), "d") == Alphabet(count, pad)


@pytest.mark.parametrize(("ids", "pad", "wanted"), [(95, None, 96), (96, 0, 97), (96, 50, 97)])
def test_too_few_ids_are_refused_with_the_number_that_is_enough(ids, pad, wanted):
    message = f"d: text needs {wanted} ids, but `Embedding` has {ids}; write `input_dim={wanted}`"
    with pytest.raises(TaskError, match=message):
        alphabet_of(reader(ids, pad), "d")


def test_features_are_no_ids():
    with pytest.raises(TaskError, match="text is read as ids, but Small takes features"):
        alphabet_of(DENSE, "d")


def test_every_character_has_an_id_and_the_padding_is_none_of_them():
    for pad in (None, 0, 5, 96, 200):
        ids = Alphabet(96, pad).encode(CHARACTERS)
        assert len(set(ids.tolist())) == 96
        assert pad not in ids.tolist()
        shown = Alphabet(96, pad).tokens
        assert [shown[one] for one in ids[1:4]] == ["␣", "!", '"']
        assert shown[ids[0]] == "⏎"


def test_other_characters_become_question_marks_and_are_counted():
    alphabet = Alphabet(96, None)
    text = "né\r\n→\t☃"
    assert alphabet.encode(text).tolist() == alphabet.encode("n?\n???").tolist()
    assert alphabet.unknown(text) == 4
    assert alphabet.unknown("plain\r\ntext\n") == 0


def test_bytes_hold_any_language():
    alphabet = Alphabet(256, 0)
    ids = alphabet.encode("né→")
    assert bytes((ids - 1).astype(np.uint8)).decode() == "né→"
    assert alphabet.unknown("né→") == 0
    assert len(alphabet.tokens) == 257
