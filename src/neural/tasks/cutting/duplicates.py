"""Documents that occur twice: found by a hash of their text, so that none is learned from and judged by."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from neural.tasks.cutting.document import Document

MIN_CHARACTERS = 40
"""Of an element that is looked for in other documents; shorter ones are equal by chance."""
MAX_SHARED = 0.1
"""Share of elements that occur in training documents as well, above which it is said."""
SHOWN = 3
"""Documents that a message names."""


def normalize(text: str) -> str:
    """Lower case, one space for any white space, compatible characters alike (NFKC)."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def document_hash(document: Document) -> str:
    """16 hexadecimal digits of the normalised text; neither how it is cut nor its boundaries matter."""
    text = " ".join(normalize(element) for element in document.elements)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def equal_documents(documents: Iterable[Document]) -> dict[str, list[Document]]:
    """Documents by their hash, in the order in which each text comes first."""
    groups: dict[str, list[Document]] = {}
    for document in documents:
        groups.setdefault(document_hash(document), []).append(document)
    return groups


def in_both(some: Sequence[Document], others: Iterable[str]) -> list[Document]:
    """Those of `some` whose hash is among `others`."""
    known = set(others)
    return [document for document in some if document_hash(document) in known]


def across_parts(parts: Mapping[str, Sequence[Document]]) -> list[str]:
    """Documents that are in two parts, in words: `song 1 (train, test)`."""
    where: dict[str, tuple[str, list[str]]] = {}
    for part, documents in parts.items():
        for digest, equal in equal_documents(documents).items():
            where.setdefault(digest, (equal[0].name, []))[1].append(part)
    return [f"{name} ({', '.join(inside)})" for name, inside in where.values() if len(inside) > 1]


def names_of(documents: Sequence[Document] | Sequence[str]) -> str:
    """The first few by name, and how many more there are."""
    names = [one if isinstance(one, str) else one.name for one in documents]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def shared_elements(held: Iterable[Document], training: Iterable[Document]) -> float:
    """Share of the long elements held out that occur in training documents, too; 0 where none is long enough."""
    known = {text for document in training for text in _long(document)}
    texts = [text for document in held for text in _long(document)]
    return sum(text in known for text in texts) / len(texts) if texts else 0.0


def _long(document: Document) -> Iterable[str]:
    texts = map(normalize, document.elements)
    return (text for text in texts if len(text) >= MIN_CHARACTERS)
