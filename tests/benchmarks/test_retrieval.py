"""The retrieval benchmark: texts, index and metrics."""

import numpy as np
import pytest
from retrieval import (
    Bm25,
    Chunk,
    build_document,
    cut_out,
    estimate_means,
    measure_splitter,
    score_query,
    split_fixed,
)

FILLER = " ".join(["Some words follow here."] * 12)
SECTION = {
    "title": "Rivers",
    "parts": [
        {"title": "Fish", "paragraphs": ["Trout swim upstream. " + FILLER, "Eels hide."]},
        {"title": "Boats", "paragraphs": ["Boats float downstream. " + FILLER]},
    ],
}


@pytest.mark.parametrize("keep_layout", [True, False])
def test_spans_of_a_document_are_those_of_its_parts(keep_layout):
    document = build_document([SECTION], keep_layout=keep_layout)
    fish, boats = document.parts
    assert document.text[slice(*fish.span)].startswith("Trout swim")
    assert document.text[slice(*fish.span)].endswith("Eels hide.")
    assert document.text[slice(*boats.span)] == SECTION["parts"][1]["paragraphs"][0]
    sentences = [document.text[slice(*span)] for span in document.first_sentences]
    assert sentences == ["Trout swim upstream.", "Boats float downstream."]
    titles = [document.text[slice(*span)] for span in document.titles]
    assert titles == (["# Rivers", "## Fish", "## Boats"] if keep_layout else [])
    assert ("\n\n" in document.text) == keep_layout


def test_fixed_chunks_have_the_same_number_of_words():
    text = "a bb  ccc d e"
    assert [text[slice(*span)] for span in split_fixed(text, 2)] == ["a bb", "ccc d", "e"]


def test_removed_spans_are_not_in_the_text_of_a_chunk():
    text = "0123456789"
    assert cut_out(text, (2, 8), [(0, 3), (5, 6), (7, 10)]) == " 34 6 "
    assert cut_out(text, (2, 8), []) == "234567"


def test_bm25_prefers_rare_words_and_short_texts():
    index = Bm25(["fish fish river", "river boat", "river boat " + "water " * 30, "law"])
    assert index.rank("boat")[0] == 1
    assert index.rank("the fish in the river").tolist()[0] == 0
    assert 3 not in index.rank("boat river")


def test_metrics_of_a_query():
    answer = (100, 200)
    chunks = [Chunk(0, (0, 90), 10), Chunk(1, (100, 200), 10), Chunk(0, (150, 400), 10)]
    scores = score_query(chunks, 0, answer, limit=10)
    # the third chunk holds half of the answer; the second is of another document
    assert scores == {
        "recall@5": 1.0,
        "containment": 0.5,
        "within the budget": 0.5,
        "tokens": 30.0,
    }
    assert score_query(chunks, 0, answer, limit=5)["within the budget"] == 0.0
    assert score_query(chunks[:2], 0, answer, limit=10)["recall@5"] == 0.0


def test_queries_find_their_part_by_its_other_words_only():
    def create_section(title, sentence):
        part = {"title": title, "paragraphs": [f"{sentence} {FILLER} It is about {title}."]}
        return {"title": title, "parts": [part]}

    sections = [create_section("fish", "Trout swim."), create_section("boats", "Canoes float.")]
    documents = [build_document([section], keep_layout=True) for section in sections]
    for document in documents:
        assert "## " in document.text
    spans = {each.text: [(0, len(each.text))] for each in documents}
    values, owners, largest = measure_splitter(documents, lambda text, limit: spans[text], 100)
    # First the titles, which are also in the last sentences; then the first sentences, whose words
    # are nowhere else.
    assert owners.tolist() == [0, 1, 0, 1]
    assert values["recall@5"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert largest == max(len(document.text.split()) for document in documents)


def test_intervals_are_over_documents():
    draws = np.array([[2, 0], [0, 2], [1, 1]])
    value, low, high = estimate_means(np.array([1.0, 1.0, 0.0]), np.array([0, 0, 1]), draws)
    assert value == pytest.approx(2 / 3)
    assert low < 0.1 and high > 0.9
