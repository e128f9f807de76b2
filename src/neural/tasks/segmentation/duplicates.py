"""Detect duplicate and overlapping documents, so that no test document was trained on.

Elements are the sentences or lines of a document. Splits are the training, validation and test
documents; held-out documents are those of the last two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from neural.tasks.segmentation.document import SegmentationDocument

MIN_SHARED_ELEMENT_CHARACTERS = 40
"""Minimum length of an element that is searched for in other documents.

Shorter elements may be equal by chance.
"""
MAX_SHARED_FRACTION = 0.1
"""If a larger fraction of held-out elements occurs in training documents, the user is warned."""
MAX_LISTED_NAMES = 3
"""Maximum number of document names in a message."""


def normalize_text(text: str) -> str:
    """Text in lower case (case folding), Unicode form NFKC, with single spaces."""
    compatible = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(compatible.casefold().split())


def hash_document(document: SegmentationDocument) -> str:
    """Hash of the normalized text, 16 hexadecimal digits.

    It does not depend on how the text is split into elements and segments.
    """
    text = " ".join(normalize_text(element) for element in document.elements)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def group_duplicates(documents: Sequence[SegmentationDocument]) -> list[list[int]]:
    """One list of document indices per distinct text, in order of the first occurrence."""
    groups: dict[str, list[int]] = {}
    for index, document in enumerate(documents):
        groups.setdefault(hash_document(document), []).append(index)
    return list(groups.values())


def find_cross_split_duplicates(splits: Mapping[str, Sequence[SegmentationDocument]]) -> list[str]:
    """Descriptions of the documents that are in two splits or more: `song 1 (train, test)`."""
    occurrences: dict[str, tuple[str, list[str]]] = {}
    for split, documents in splits.items():
        hashes = {hash_document(document): document.name for document in documents}
        for digest, name in hashes.items():
            occurrences.setdefault(digest, (name, []))[1].append(split)
    return [
        f"{name} ({', '.join(split_names)})"
        for name, split_names in occurrences.values()
        if len(split_names) > 1
    ]


def format_names(names: Sequence[str]) -> str:
    """The first `MAX_LISTED_NAMES` names, and the number of the others: `a, b, c and 2 more`."""
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(names[:MAX_LISTED_NAMES]) + more


def measure_overlap(
    held_out: Iterable[SegmentationDocument], training: Iterable[SegmentationDocument]
) -> float:
    """Fraction of the long held-out elements that also occur in training documents.

    Long is `MIN_SHARED_ELEMENT_CHARACTERS` or more. The result is 0 if no element is long.
    """
    texts = [text for document in held_out for text in _long_elements(document)]
    if not texts:
        return 0.0
    training_texts = {text for document in training for text in _long_elements(document)}
    return sum(text in training_texts for text in texts) / len(texts)


def format_overlap_note(collection_name: str, fraction: float) -> list[str]:
    """List of one warning if the fraction is above `MAX_SHARED_FRACTION`, else an empty list.

    `fraction` is the result of `measure_overlap`.
    """
    if fraction <= MAX_SHARED_FRACTION:
        return []
    return [
        f"{collection_name}: {fraction:.0%} of the held-out elements (of those with "
        f"{MIN_SHARED_ELEMENT_CHARACTERS} characters or more) also occur in training documents, "
        "so the scores are too good"
    ]


def drop_overlapping(documents: Sequence[SegmentationDocument]) -> tuple[SegmentationDocument, ...]:
    """The documents without those that mostly repeat the others.

    From the largest document to the smallest, a document is dropped if more than half of its long
    elements occur in the documents that are not dropped yet.
    """
    elements = {index: set(_long_elements(document)) for index, document in enumerate(documents)}
    for index in sorted(elements, key=lambda index: -len(documents[index])):
        own_texts = elements[index]
        other_texts = set().union(*(texts for other, texts in elements.items() if other != index))
        if 2 * len(own_texts & other_texts) > len(own_texts):
            del elements[index]
    return tuple(documents[index] for index in elements)


def _long_elements(document: SegmentationDocument) -> list[str]:
    """Normalized texts of the elements that are too long to be equal by chance."""
    texts = map(normalize_text, document.elements)
    return [text for text in texts if len(text) >= MIN_SHARED_ELEMENT_CHARACTERS]
