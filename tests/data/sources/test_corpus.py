"""One long text as windows for next-character prediction."""

import pytest

from neural.core.errors import TaskError
from neural.data.sources.corpus import Corpus
from neural.data.text_encoding import DEFAULT_WINDOW_LENGTH
from tests.tasks.networks import LETTERS, TRANSLATE, build_network


def test_a_text_file_is_cut_into_windows(tmp_path):
    (tmp_path / "book.txt").write_text("0123456789abcdefghijklmnopqrstuvwxyz")
    assert Corpus.matches(tmp_path / "book.txt")
    examples = Corpus.read(tmp_path / "book.txt", LETTERS)
    rows = [
        "".join(examples.tokens[token_id] for token_id in row)
        for role in ("x", "y")
        for row in examples.train[role]
    ]
    assert rows == ["0123456789abcdef", "ghijklmnopqrstuv", "123456789abcdefg", "hijklmnopqrstuvw"]


def test_a_dataset_is_searched_in_neural_data(tmp_path, monkeypatch):
    (tmp_path / "text8").write_text("a rose is a rose is a rose")
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    assert Corpus.read("text8", LETTERS).train["x"].shape == (1, 16)


def test_an_open_length_gets_the_default_window(tmp_path):
    (tmp_path / "book.txt").write_text("a" * 300)
    network = build_network(
        "(None,)", 'Embedding(input_dim=96, output_dim=4) | Output(96, activation="softmax")'
    )
    assert Corpus.read(tmp_path / "book.txt", network).train["x"].shape == (
        2,
        DEFAULT_WINDOW_LENGTH,
    )


def test_a_text_that_is_too_short_is_refused(tmp_path):
    (tmp_path / "book.txt").write_text("a" * 16)
    with pytest.raises(
        TaskError, match=r"book.txt has 16 characters; a window of 16 needs at least 17"
    ):
        Corpus.read(tmp_path / "book.txt", LETTERS)


def test_two_sequences_need_more_than_one_text(tmp_path):
    (tmp_path / "book.txt").write_text("a" * 99)
    with pytest.raises(TaskError, match=r"book.txt is one text, but Small takes two sequences"):
        Corpus.read(tmp_path / "book.txt", TRANSLATE)
