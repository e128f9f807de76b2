"""Texts in one folder per class, as sequences of character ids.

An Alphabet (text_encoding.py) is a fixed table of characters or bytes; which one depends on the
number of ids in the network's `Embedding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.data.class_folders import find_class_folders, has_class_folders
from neural.data.source import DataLocation, DataSource, Examples
from neural.data.sources.corpus import read_text
from neural.data.text_encoding import Alphabet, select_alphabet

if TYPE_CHECKING:
    from neural.language.network import Network

SUFFIXES = (".txt",)
MAX_CHARACTERS = 1024
"""Longest text, in token ids, if the network leaves the length open."""


class Texts(DataSource):
    """Texts as character ids, truncated and padded to the network's length, with a mask."""

    description: ClassVar[str] = "a folder with one folder of .txt files per class"

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A folder with .txt files in subfolders."""
        return (
            isinstance(location, Path)
            and location.is_dir()
            and has_class_folders(location, SUFFIXES)
        )

    @classmethod
    def read(cls, location: Path, network: Network) -> Examples:
        """One example per file."""
        alphabet = select_alphabet(network, location.name)
        folders = find_class_folders(location, SUFFIXES)
        splits, notes = [], []
        for labelled_files in filter(None, (folders.train, folders.valid)):
            texts = [read_text(file) for file in labelled_files.files]
            names = [f"{file.parent.name}/{file.name}" for file in labelled_files.files]
            arrays, split_notes = pad_texts(texts, names, network, alphabet, location.name)
            splits.append({**arrays, "y": labelled_files.labels})
            notes += split_notes
        train, valid = (*splits, None)[:2]
        assert train is not None
        return Examples(
            data_name=location.name,
            train=train,
            valid=valid,
            classes=folders.classes,
            tokens=alphabet.tokens,
            notes=tuple(dict.fromkeys(notes)),
        )


def pad_texts(
    texts: Sequence[str], names: Sequence[str], network: Network, alphabet: Alphabet, data_name: str
) -> tuple[dict[str, np.ndarray], list[str]]:
    """({"x": token ids (texts, length), "mask": true at text}, notes on truncation and encoding).

    `names` are those of the texts and `data_name` that of the dataset, in messages.
    """
    rows = [alphabet.encode(text) for text in texts]
    for name, row in zip(names, rows, strict=True):
        if not len(row):
            raise TaskError(f"{data_name}: {name} is empty; remove it")
    longest = max(map(len, rows))
    length = network.input[0] if isinstance(network.input[0], int) else min(longest, MAX_CHARACTERS)
    num_truncated = sum(len(row) > length for row in rows)
    unknown_count = sum(map(alphabet.count_unknown, texts))
    notes = (
        [f"{data_name}: {num_truncated} of {len(rows)} texts are truncated to {length} characters"]
        if num_truncated
        else []
    )
    notes += (
        [f"{data_name}: {unknown_count:,} characters outside printable ASCII are read as `?`"]
        if unknown_count
        else []
    )
    x = np.full((len(rows), length), alphabet.pad_id or 0, dtype=np.int64)
    mask = np.zeros((len(rows), length), dtype=bool)
    for index, row in enumerate(rows):
        x[index, : len(row)] = row[:length]
        mask[index, : len(row)] = True
    return {"x": x, "mask": mask}, notes
