"""The node parser for LlamaIndex."""

import pytest

from neural.core.errors import TaskError
from tests.integrations.stand_ins import LLAMA_INDEX, import_adapter

TEXT = (
    "# Ships\n\n" + "The ship sails. The anchor is up. " * 12 + "\n\n## Bread\n\n" + "Bake it. " * 9
)


@pytest.fixture(params=["real", "stand-in"])
def adapter(request, monkeypatch):
    return import_adapter("llama_index", request.param, LLAMA_INDEX, monkeypatch)


def test_nodes_have_exact_positions_although_texts_occur_twice(adapter):
    parser = adapter.NeuralNodeParser(chunk_size=14)
    nodes = parser.get_nodes_from_documents(
        [adapter.Document(text=TEXT), adapter.Document(text="")]
    )
    assert len(nodes) > 3
    assert len({node.text for node in nodes}) < len(nodes)
    assert "".join(TEXT[node.start_char_idx : node.end_char_idx] for node in nodes) == TEXT
    for node in nodes:
        assert node.metadata["tokens"] == len(node.text.split()) <= 14
        assert set(node.metadata) <= {"title", "probability", "tokens"}
    assert nodes[0].metadata["title"] == "Ships"
    assert "".join(parser.split_text(TEXT)) == TEXT


def test_the_metadata_of_the_document_count_for_the_budget(adapter):
    document = adapter.Document(text=TEXT, metadata={"file": "a long name of a file"})
    parser = adapter.NeuralNodeParser(chunk_size=24, chunk_overlap=4)
    for node in parser.get_nodes_from_documents([document]):
        content = node.get_content(metadata_mode="embed")
        assert content.startswith("file: a long name of a file")
        assert "title" not in content.partition("\n")[2][:10]
        assert len(content.split()) <= 24
    with pytest.raises(TaskError, match="leaves none for its text"):
        adapter.NeuralNodeParser(chunk_size=8).get_nodes_from_documents([document])


def test_options_and_tokenizer_are_those_of_segment(adapter):
    parser = adapter.NeuralNodeParser(
        chunk_size=90, tokenizer="chars", segment_options={"markup": "plain", "min_elements": 1}
    )
    assert max(map(len, parser.split_text(TEXT))) <= 90
    assert max(map(len, parser.split_text_metadata_aware(TEXT, "a: b"))) <= 90 - 4
    assert parser.class_name() == "NeuralNodeParser"
