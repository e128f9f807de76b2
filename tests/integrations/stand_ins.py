"""Stand-ins for the libraries of the adapters: the base classes and functions that adapters use.

They behave as the originals where adapters depend on it, so that the adapters are tested without
the libraries. `make integrations` runs the same tests with the originals.
"""

import importlib
import os
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import pytest


def import_adapter(name, library, modules, monkeypatch):
    """Import `neural.integrations.NAME` anew with a real library or with stand-ins.

    `library` is "real", which skips the test where the library is missing, or "stand-in".
    """
    if library == "real":
        for module in modules:
            if os.environ.get("NEURAL_TEST_FRAMEWORKS"):  # make integrations
                importlib.import_module(module)
            else:
                pytest.importorskip(module)
    else:
        for module_name, contents in modules.items():
            parts = module_name.split(".")
            for end in range(1, len(parts) + 1):
                parent = ".".join(parts[:end])
                if parent not in modules or end < len(parts):
                    monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
            module = ModuleType(module_name)
            vars(module).update(contents)
            monkeypatch.setitem(sys.modules, module_name, module)
    full_name = f"neural.integrations.{name}"
    monkeypatch.delitem(sys.modules, full_name, raising=False)
    adapter = importlib.import_module(full_name)
    # Other tests import the adapter again.
    monkeypatch.delitem(sys.modules, full_name)
    return adapter


# LangChain


@dataclass
class LangChainDocument:
    page_content: str
    metadata: dict = field(default_factory=dict)


class LangChainTextSplitter:
    def __init__(
        self,
        chunk_size=4000,
        chunk_overlap=200,
        length_function=len,
        keep_separator=False,
        add_start_index=False,
        strip_whitespace=True,
    ):
        if chunk_overlap > chunk_size:
            raise ValueError("larger chunk overlap")
        self._chunk_size, self._chunk_overlap = chunk_size, chunk_overlap
        self._length_function, self._strip_whitespace = length_function, strip_whitespace
        self._add_start_index = add_start_index

    def split_documents(self, documents):
        documents = list(documents)
        return self.create_documents(
            [document.page_content for document in documents],
            metadatas=[document.metadata for document in documents],
        )

    @classmethod
    def from_huggingface_tokenizer(cls, tokenizer, **options):
        return cls(length_function=lambda text: len(tokenizer.tokenize(text)), **options)


LANGCHAIN = {
    "langchain_core.documents": {"Document": LangChainDocument},
    "langchain_text_splitters": {"TextSplitter": LangChainTextSplitter},
}

# LlamaIndex


@dataclass
class Node:
    text: str = ""
    metadata: dict = field(default_factory=dict)
    excluded_embed_metadata_keys: list = field(default_factory=list)
    excluded_llm_metadata_keys: list = field(default_factory=list)
    start_char_idx: int | None = None
    end_char_idx: int | None = None
    source: object = None

    def get_content(self, metadata_mode="none"):
        if metadata_mode == "none":
            return self.text
        excluded = getattr(self, f"excluded_{metadata_mode}_metadata_keys")
        lines = [f"{key}: {value}" for key, value in self.metadata.items() if key not in excluded]
        return "\n".join(lines) + "\n\n" * bool(lines) + self.text

    def get_metadata_str(self, mode="embed"):
        return "\n".join(f"{key}: {value}" for key, value in self.metadata.items())


class MetadataAwareTextSplitter:
    include_metadata = True
    id_func = None

    def __init__(self, **fields):
        for name, value in fields.items():
            setattr(self, name, value)

    def _get_metadata_str(self, node):
        return node.get_metadata_str()

    def get_nodes_from_documents(self, documents):
        nodes = self._parse_nodes(documents)
        return self._postprocess_parsed_nodes(
            nodes, {id(document): document for document in documents}
        )

    def _postprocess_parsed_nodes(self, nodes, parent_doc_map):
        for node in nodes:
            # wrong for texts that occur twice, as in the original
            node.start_char_idx = node.source.text.find(node.text)
            node.end_char_idx = node.start_char_idx + len(node.text)
            if self.include_metadata:
                node.metadata = node.source.metadata | node.metadata
        return nodes


LLAMA_INDEX = {
    "llama_index.core.bridge.pydantic": {
        "Field": lambda default, **_: default,
        "PrivateAttr": lambda: None,
    },
    "llama_index.core.node_parser.interface": {
        "MetadataAwareTextSplitter": MetadataAwareTextSplitter
    },
    "llama_index.core.node_parser.node_utils": {
        "build_nodes_from_splits": lambda splits, document, id_func=None: [
            Node(split, source=document) for split in splits
        ]
    },
    "llama_index.core.schema": {
        "BaseNode": Node,
        "Document": Node,
        "MetadataMode": SimpleNamespace(NONE="none"),
    },
    "llama_index.core.utils": {"get_tqdm_iterable": lambda items, show, text: items},
}

# Haystack


@dataclass
class HaystackDocument:
    content: str | None = None
    meta: dict = field(default_factory=dict)
    id: str = "document"


def component(decorated):
    return decorated


component.output_types = lambda **types: lambda method: method

HAYSTACK = {
    "haystack": {
        "Document": HaystackDocument,
        "component": component,
        "default_to_dict": lambda instance, **parameters: {"init_parameters": parameters},
    }
}
