"""The table of word vectors: reading and writing, look-up of stems, numbers and prefixes."""

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.tasks.segmentation.tokenization import tokenize_elements
from neural.tasks.segmentation.word_vectors import (
    WORD_VECTORS_FILE,
    load_word_vectors,
    save_word_vectors,
)

WORDS = ["riv", "boat", "photo*", "#year", "#number"]


@pytest.fixture
def table(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 16))
    save_word_vectors(tmp_path / "vectors.safetensors", WORDS, vectors)
    return load_word_vectors(tmp_path / "vectors.safetensors"), vectors


def test_a_saved_table_has_the_same_vectors_up_to_rounding(table):
    loaded, vectors = table
    restored = loaded.rows * loaded.scales[:, None]
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    assert np.all(np.abs(restored - vectors) <= largest / 127 * 0.51)


def test_rare_words_have_the_vector_of_their_prefix(table):
    loaded, _ = table
    assert loaded.find_row("photosynthes") == WORDS.index("photo*")
    assert loaded.find_row("photo") == -1  # five letters: a word of its own, and unknown


@pytest.mark.parametrize(
    ("stem", "entry"),
    [("1984", "#year"), ("3000", "#number"), ("12", "#number"), ("2nd", "#number")],
)
def test_numbers_share_vectors(table, stem, entry):
    loaded, _ = table
    assert loaded.find_row(stem) == WORDS.index(entry)


def test_an_element_is_the_sum_of_its_words(table):
    loaded, _ = table
    tokens = tokenize_elements(["The rivers and the boat", "of the", "Boats!"])
    vectors = loaded.rows * loaded.scales[:, None]
    result = loaded.embed_elements(tokens)
    np.testing.assert_allclose(result[0], vectors[0] + vectors[1], rtol=1e-5)
    assert not result[1].any()
    np.testing.assert_allclose(result[2], vectors[1], rtol=1e-5)


def test_another_table_can_be_named_in_the_environment(table, tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_WORD_VECTORS", str(tmp_path / "vectors.safetensors"))
    assert load_word_vectors() is table[0]
    assert load_word_vectors().version != load_word_vectors(WORD_VECTORS_FILE).version


def test_broken_files_are_reported(tmp_path):
    path = tmp_path / "vectors.safetensors"
    with pytest.raises(TaskError, match=r"vectors\.safetensors"):
        load_word_vectors(path)
    path.write_bytes(b"not a table")
    with pytest.raises(TaskError, match="not a valid file of word vectors"):
        load_word_vectors(path)


def test_the_shipped_table_knows_what_words_are_about():
    table = load_word_vectors(WORD_VECTORS_FILE)
    tokens = tokenize_elements(
        [
            "The orchestra played the symphony, and the violins were brilliant.",
            "A composer wrote the opera for the pianist and the singer.",
            "The enzyme binds to the protein in the membrane of the cell.",
        ]
    )
    vectors = table.embed_elements(tokens)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    similarity = vectors @ vectors.T
    assert similarity[0, 1] > 0.3 > similarity[0, 2]
