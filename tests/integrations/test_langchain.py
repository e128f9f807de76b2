"""The text splitter for LangChain."""

import pytest

from tests.integrations.stand_ins import LANGCHAIN, import_adapter

TEXT = (
    "# Ships\n\n" + "The ship sails. The anchor is up.  " * 9 + "\n\n## Bread\n\n" + "Bake it. " * 9
)


@pytest.fixture(params=["real", "stand-in"])
def adapter(request, monkeypatch):
    return import_adapter("langchain", request.param, LANGCHAIN, monkeypatch)


def test_chunks_are_within_the_budget_and_have_exact_positions(adapter):
    splitter = adapter.NeuralTextSplitter(chunk_size=20, chunk_overlap=4)
    documents = splitter.create_documents([TEXT, " \n"], [{"file": "a.md"}, {"file": "b.md"}])
    assert len(documents) > 3
    for document in documents:
        start = document.metadata["start_index"]
        assert TEXT[start : start + len(document.page_content)] == document.page_content
        assert document.metadata["tokens"] == len(document.page_content.split()) <= 20
        assert document.metadata["file"] == "a.md"
    assert documents[0].metadata["title"] == "Ships"
    assert documents[0].metadata["probability"] == 1
    assert len({tuple(document.metadata) for document in documents}) == 1
    assert 0 <= documents[-1].metadata["probability"] <= 1
    assert splitter.split_text(TEXT) == [document.page_content for document in documents]
    again = splitter.split_documents([adapter.Document(page_content=TEXT, metadata={})])
    assert [document.page_content for document in again] == splitter.split_text(TEXT)


def test_chunks_without_overlap_join_to_the_text_unless_white_space_is_stripped(adapter):
    assert "".join(adapter.NeuralTextSplitter(chunk_size=20).split_text(TEXT)) == TEXT
    splitter = adapter.NeuralTextSplitter(chunk_size=20, strip_whitespace=True)
    for document in splitter.create_documents([TEXT]):
        assert document.page_content == document.page_content.strip()
        assert TEXT[document.metadata["start_index"] :].startswith(document.page_content)


def test_lengths_are_counted_as_langchain_counts_them(adapter):
    splitter = adapter.NeuralTextSplitter(chunk_size=80, length_function=len)
    assert max(map(len, splitter.split_text(TEXT))) <= 80
    splitter = adapter.NeuralTextSplitter(chunk_size=80, tokenizer="chars", markup="plain")
    assert max(map(len, splitter.split_text(TEXT))) <= 80


class WordTokenizer:
    """As a tokenizer of transformers: special tokens around the words of a text."""

    def tokenize(self, text):
        return text.split()

    def convert_ids_to_tokens(self, ids):
        return ids

    def __call__(self, text, **options):
        return {"input_ids": ["[CLS]", *text.split(), "[SEP]"]}


def test_special_tokens_of_a_hugging_face_tokenizer_count(adapter):
    splitter = adapter.NeuralTextSplitter.from_huggingface_tokenizer(WordTokenizer(), chunk_size=12)
    documents = splitter.create_documents([TEXT])
    for document in documents:
        assert document.metadata["tokens"] == len(document.page_content.split()) + 2 <= 12
