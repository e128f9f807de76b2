"""One long text."""

import pytest

from neural.tasks.data.sources.corpus import Corpus
from neural.tasks.data.windows import USUAL_LENGTH
from neural.tasks.task import TaskError
from tests.tasks.networks import LETTERS, TRANSLATE, made


def test_a_text_of_ones_own_is_cut_into_windows(tmp_path):
    (tmp_path / "book.txt").write_text("0123456789abcdefghijklmnopqrstuvwxyz")
    assert Corpus.fits(tmp_path / "book.txt")
    found = Corpus.read(tmp_path / "book.txt", LETTERS)
    rows = ["".join(found.tokens[one] for one in row) for part in ("x", "y") for row in found.train[part]]
    assert rows == ["0123456789abcdef", "ghijklmnopqrstuv", "123456789abcdefg", "hijklmnopqrstuvw"]


def test_a_name_is_looked_for_in_the_folder_that_the_user_gave(tmp_path, monkeypatch):
    (tmp_path / "text8").write_text("a rose is a rose is a rose")
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    assert Corpus.read("text8", LETTERS).train["x"].shape == (1, 16)


def test_an_open_length_has_a_usual_window(tmp_path):
    (tmp_path / "book.txt").write_text("a" * 300)
    network = made("(None,)", 'Embedding(input_dim=96, output_dim=4) | Output(96, activation="softmax")')
    assert Corpus.read(tmp_path / "book.txt", network).train["x"].shape == (2, USUAL_LENGTH)


def test_a_text_that_is_too_short_is_refused(tmp_path):
    (tmp_path / "book.txt").write_text("a" * 16)
    with pytest.raises(TaskError, match=r"book.txt has 16 characters; a window of 16 needs at least 17"):
        Corpus.read(tmp_path / "book.txt", LETTERS)


def test_two_sequences_need_more_than_one_text(tmp_path):
    (tmp_path / "book.txt").write_text("a" * 99)
    with pytest.raises(TaskError, match=r"book.txt is one text, but Small reads two sequences"):
        Corpus.read(tmp_path / "book.txt", TRANSLATE)
