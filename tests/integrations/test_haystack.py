"""The document splitter for Haystack."""

import pytest

from tests.integrations.stand_ins import HAYSTACK, import_adapter

TEXT = (
    "# Ships\n\n" + "The ship sails. The anchor is up. " * 12 + "\n\n## Bread\n\n" + "Bake it. " * 9
)


@pytest.fixture(params=["real", "stand-in"])
def adapter(request, monkeypatch):
    return import_adapter("haystack", request.param, HAYSTACK, monkeypatch)


def test_documents_are_split_with_metadata(adapter):
    splitter = adapter.NeuralDocumentSplitter(max_tokens=20)
    source = adapter.Document(content=TEXT, meta={"file": "a.md"})
    documents = splitter.run([source, adapter.Document(content=" ")])["documents"]
    assert "".join(document.content for document in documents) == TEXT
    for number, document in enumerate(documents):
        start = document.meta["split_idx_start"]
        assert TEXT[start : start + len(document.content)] == document.content
        assert document.meta["tokens"] <= 20
        assert document.meta["split_id"] == number
        assert (document.meta["source_id"], document.meta["file"]) == (source.id, "a.md")
    assert documents[0].meta["title"] == "Ships"


def test_arguments_are_saved(adapter):
    splitter = adapter.NeuralDocumentSplitter(max_tokens=40, overlap=0.1, tokenizer="chars")
    parameters = splitter.to_dict()["init_parameters"]
    assert adapter.NeuralDocumentSplitter(**parameters).run([adapter.Document(content=TEXT)])
    assert (parameters["max_tokens"], parameters["tokenizer"]) == (40, "chars")


def test_a_document_without_text_is_an_error(adapter):
    with pytest.raises(ValueError, match="has no text to split"):
        adapter.NeuralDocumentSplitter().run([adapter.Document(content=None)])
