"""The five self-similarity matrices against the loops over all pairs that define them."""

import numpy as np
import pytest

from neural.tasks.cutting import similarity
from neural.tasks.cutting.described import SETS, SIMILARITIES, columns, features, features_of_all
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.features import registry
from neural.tasks.cutting.words import words_of
from tests.tasks.cutting.features.loops import by_loops

SONG = Document(
    "song",
    (
        "Walking down the road tonight", "Nothing left but fading light", "", "Oh the river runs away",
        "Oh the river runs away", "Every night and every day", "Walking down", "I was singing quietly", "…", "light",
        "Walking up the hill at night", "Oh the river", "Seven days", "They were never mine to stay",
    ),
)  # fmt: skip


@pytest.mark.parametrize("name", SIMILARITIES)
def test_every_matrix_equals_its_loops(name):
    np.testing.assert_allclose(features(SONG, [name]), by_loops(SONG.elements, [name]), atol=1e-6)


def test_blocks_of_rows_give_what_the_whole_matrix_gives(monkeypatch):
    whole = features(SONG, 60)
    monkeypatch.setattr(similarity, "BLOCK", 3 * len(SONG))
    np.testing.assert_array_equal(features(SONG, 60), whole)


def test_many_documents_at_once_are_the_same_as_one_by_one():
    documents = [SONG, Document("one", ("Alone",)), Document("two", SONG.elements[3:9]), Document("none", ("", "?"))]
    for together, document in zip(features_of_all(documents, "songs", keep=False), documents, strict=True):
        np.testing.assert_array_equal(together, features(document, "songs"))


def test_elements_of_other_documents_are_not_looked_at():
    alone = features(SONG, 60)
    np.testing.assert_array_equal(features_of_all([SONG, SONG], 60, keep=False)[1], alone)


@pytest.mark.parametrize(("inputs", "matrices"), [("36", 3), ("48", 4), ("60", 5)])
def test_the_documents_inputs_are_so_many_matrices_in_a_fixed_order(inputs, matrices):
    names = columns(int(inputs))
    assert len(names) == int(inputs)
    assert SETS[inputs] == SIMILARITIES[:matrices]
    assert [name.partition(".")[2] for name in names] == list(similarity.STATISTICS) * matrices


def test_a_single_element_is_like_nothing():
    assert not features(Document("one", ("Alone in the night",)), 60).any()


def test_a_line_that_comes_again_is_found_where_it_stands():
    table = dict(zip(columns(60), features(SONG, 60)[4], strict=True))
    assert table["word_overlap.maximum"] == 1 and table["word_overlap.previous"] == 1
    assert table["word_overlap.match"] == pytest.approx(3 / (len(SONG) - 1))


def test_the_memory_of_a_long_document_grows_with_its_length(monkeypatch):
    seen = []
    real = registry.get("first_words")

    class Counted(real):
        def rows(self, words):
            inner = super().rows(words)
            return lambda some, among: seen.append(inner(some, among)) or seen[-1]

    monkeypatch.setattr(similarity, "BLOCK", 1 << 12)
    document = Document("long", tuple(f"line {number % 7} of many" for number in range(500)))
    Counted().compute(document, words_of(document.elements))
    assert max(block.size for block in seen) <= 1 << 12
    assert sum(block.size for block in seen) == 500 * 500
