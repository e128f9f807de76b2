"""Texts in one folder per class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.tasks.data.alphabet import Alphabet, alphabet_of
from neural.tasks.data.folders import class_folders, holds
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.data.sources.corpus import read_text
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network

SUFFIXES = (".txt",)
LONGEST = 1024
"""Characters kept of a text where the network leaves the length open."""


class Texts(Source):
    """Characters as ids, cut and padded to the network's length, with a mask."""

    looks: ClassVar[str] = "a folder with one folder of .txt files per class"

    @classmethod
    def fits(cls, where: Where) -> bool:
        """A folder with .txt files in subfolders."""
        return isinstance(where, Path) and where.is_dir() and holds(where, SUFFIXES)

    @classmethod
    def read(cls, where: Path, network: Network) -> Examples:
        """Each file is an example."""
        alphabet = alphabet_of(network, where.name)
        found = class_folders(where, SUFFIXES)
        parts, remarks = [], []
        for one in filter(None, (found.train, found.valid)):
            texts = [read_text(file) for file in one.files]
            names = [f"{file.parent.name}/{file.name}" for file in one.files]
            arrays, said = padded(texts, names, network, alphabet, where.name)
            parts.append({**arrays, "y": one.y})
            remarks += said
        train, valid = (*parts, None)[:2]
        assert train is not None
        return Examples(
            where=where.name, train=train, valid=valid, classes=found.classes, tokens=alphabet.tokens,
            remarks=tuple(dict.fromkeys(remarks)),
        )  # fmt: skip


def padded(
    texts: Sequence[str], names: Sequence[str], network: Network, alphabet: Alphabet, where: str
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Ids (texts, length) and where they are real; and what was lost on the way."""
    rows = [alphabet.encode(text) for text in texts]
    for name, row in zip(names, rows, strict=True):
        if not len(row):
            raise TaskError(f"{where}: {name} is empty; remove it")
    longest = max(map(len, rows))
    length = network.input[0] if isinstance(network.input[0], int) else min(longest, LONGEST)
    cut = sum(len(row) > length for row in rows)
    unknown = sum(map(alphabet.unknown, texts))
    remarks = [f"{where}: {cut} of {len(rows)} texts are cut to {length} characters"] if cut else []
    remarks += [f"{where}: {unknown:,} characters outside printable ASCII are read as `?`"] if unknown else []
    x = np.full((len(rows), length), alphabet.pad or 0, dtype=np.int64)
    mask = np.zeros((len(rows), length), dtype=bool)
    for number, row in enumerate(rows):
        x[number, : len(row)] = row[:length]
        mask[number, : len(row)] = True
    return {"x": x, "mask": mask}, remarks
