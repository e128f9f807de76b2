"""Documents that occur twice: found by a hash of their text, so that none is both learned from and judged by."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from neural.tasks.cutting.document import Document

MIN_CHARACTERS = 40
"""Of an element that is looked for in other documents; shorter ones may be equal by chance."""
MAX_SHARED = 0.1
"""Share of held-out elements that may occur in training documents before a note says so."""
MAX_NAMES = 3
"""Documents that a message names."""


def normalize(text: str) -> str:
    """Lower case, one space for any white space, compatible characters alike (NFKC)."""
    compatible = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(compatible.casefold().split())


def document_hash(document: Document) -> str:
    """16 hexadecimal digits of the normalised text; neither how it is cut nor its boundaries matter."""
    text = " ".join(normalize(element) for element in document.elements)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def group_equal(documents: Sequence[Document]) -> list[list[int]]:
    """The numbers of documents with the same text, in the order in which each text comes first."""
    groups: dict[str, list[int]] = {}
    for number, document in enumerate(documents):
        groups.setdefault(document_hash(document), []).append(number)
    return list(groups.values())


def find_across(parts: Mapping[str, Sequence[Document]]) -> list[str]:
    """Documents that are in two parts, for messages: `song 1 (train, test)`."""
    where: dict[str, tuple[str, list[str]]] = {}
    for part, documents in parts.items():
        hashes = {document_hash(document): document.name for document in documents}
        for digest, name in hashes.items():
            where.setdefault(digest, (name, []))[1].append(part)
    return [f"{name} ({', '.join(inside)})" for name, inside in where.values() if len(inside) > 1]


def list_names(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def shared_elements(held: Iterable[Document], training: Iterable[Document]) -> float:
    """Share of the long elements held out that occur in training documents; 0 where none is long enough."""
    texts = [text for document in held for text in _long_elements(document)]
    if not texts:
        return 0.0
    known = {text for document in training for text in _long_elements(document)}
    return sum(text in known for text in texts) / len(texts)


def shared_note(where: str, share: float) -> list[str]:
    """A note where more than `MAX_SHARED` is shared."""
    if share <= MAX_SHARED:
        return []
    return [
        f"{where}: {share:.0%} of the elements held out (of those with {MIN_CHARACTERS} characters or more) occur in "
        "training documents as well, so the scores flatter"
    ]


def without_repeats(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Those that are not mostly made of others: the largest is looked at first, and what is left counts."""
    elements = {number: set(_long_elements(document)) for number, document in enumerate(documents)}
    for number in sorted(elements, key=lambda number: -len(documents[number])):
        own = elements[number]
        others = set().union(*(texts for other, texts in elements.items() if other != number))
        if 2 * len(own & others) > len(own):
            del elements[number]
    return tuple(documents[number] for number in elements)


def _long_elements(document: Document) -> list[str]:
    texts = map(normalize, document.elements)
    return [text for text in texts if len(text) >= MIN_CHARACTERS]
