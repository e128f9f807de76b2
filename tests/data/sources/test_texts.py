"""Texts in class folders."""

import pytest

from neural.core.errors import TaskError
from neural.data.sources.texts import Texts
from tests.tasks.networks import build_network

HEAD = 'GlobalAveragePooling1D() | Output(2, activation="softmax")'
EMBEDDED = f"Embedding(input_dim=97, output_dim=4, pad_id=0) | {HEAD}"
READER = build_network("(5,)", EMBEDDED)


def write_text(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_texts_are_truncated_and_padded_with_a_mask(tmp_path):
    write_text(tmp_path, "ham/a.txt", "abc")
    write_text(tmp_path, "spam/b.txt", "abcdefg")
    assert Texts.matches(tmp_path)
    examples = Texts.read(tmp_path, READER)
    assert examples.classes == ("ham", "spam")
    assert examples.train["y"].tolist() == [0, 1]
    assert examples.train["mask"].tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    assert [[examples.tokens[token_id] for token_id in row] for row in examples.train["x"]] == [
        list("abc··"),
        list("abcde"),
    ]
    assert examples.notes == (f"{tmp_path.name}: 1 of 2 texts are truncated to 5 characters",)


def test_an_open_length_is_that_of_the_longest_text(tmp_path):
    write_text(tmp_path, "ham/a.txt", "abc")
    write_text(tmp_path, "spam/b.txt", "abcdefg")
    assert Texts.read(tmp_path, build_network("(None,)", EMBEDDED)).train["x"].shape == (2, 7)


def test_the_validation_split_of_the_data_is_used(tmp_path):
    for split in ("train", "valid"):
        write_text(tmp_path, f"{split}/ham/a.txt", "abc")
    examples = Texts.read(tmp_path, READER)
    assert examples.classes == ("ham",)
    assert examples.valid["x"].shape == (1, 5)


def test_an_empty_text_is_named(tmp_path):
    write_text(tmp_path, "ham/a.txt", "")
    with pytest.raises(TaskError, match=r"ham/a.txt is empty; remove it"):
        Texts.read(tmp_path, READER)


def test_unknown_characters_are_counted(tmp_path):
    write_text(tmp_path, "ham/a.txt", "é→a")
    assert (
        "2 characters outside printable ASCII are read as `?`"
        in Texts.read(tmp_path, READER).notes[0]
    )
