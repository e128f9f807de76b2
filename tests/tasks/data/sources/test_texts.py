"""Texts in folders."""

import pytest

from neural.tasks.data.sources.texts import Texts
from neural.tasks.task import TaskError
from tests.tasks.networks import made

HEAD = 'GlobalAveragePooling1D() | Output(2, activation="softmax")'
EMBEDDED = f"Embedding(input_dim=97, output_dim=4, pad_id=0) | {HEAD}"
READER = made("(5,)", EMBEDDED)


def written(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_texts_are_cut_and_padded_and_the_mask_says_what_is_real(tmp_path):
    written(tmp_path, "ham/a.txt", "abc")
    written(tmp_path, "spam/b.txt", "abcdefg")
    assert Texts.fits(tmp_path)
    found = Texts.read(tmp_path, READER)
    assert found.classes == ("ham", "spam")
    assert found.train["y"].tolist() == [0, 1]
    assert found.train["mask"].tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    assert [[found.tokens[one] for one in row] for row in found.train["x"]] == [list("abc··"), list("abcde")]
    assert found.remarks == (f"{tmp_path.name}: 1 of 2 texts are cut to 5 characters",)


def test_an_open_length_is_that_of_the_longest_text(tmp_path):
    written(tmp_path, "ham/a.txt", "abc")
    written(tmp_path, "spam/b.txt", "abcdefg")
    assert Texts.read(tmp_path, made("(None,)", EMBEDDED)).train["x"].shape == (2, 7)


def test_a_split_of_its_own_is_kept(tmp_path):
    for part in ("train", "valid"):
        written(tmp_path, f"{part}/ham/a.txt", "abc")
    found = Texts.read(tmp_path, READER)
    assert found.classes == ("ham",)
    assert found.valid["x"].shape == (1, 5)


def test_an_empty_text_is_named(tmp_path):
    written(tmp_path, "ham/a.txt", "")
    with pytest.raises(TaskError, match=r"ham/a.txt is empty; remove it"):
        Texts.read(tmp_path, READER)


def test_lost_characters_are_counted(tmp_path):
    written(tmp_path, "ham/a.txt", "é→a")
    assert "2 characters outside printable ASCII are read as `?`" in Texts.read(tmp_path, READER).remarks[0]
