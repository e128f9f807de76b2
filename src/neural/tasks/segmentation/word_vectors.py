"""Static word vectors: a table of int8 vectors by stem, which comes with the package.

The vector of a text is the sum of the vectors of its words. Texts about the same subject have
similar vectors even if they share no word. Word vectors are trained by
examples/segmentation/word_vectors.py, which also lists the texts they were trained on.

The file is safetensors with `rows`, int8 (words, width), `scales`, float16 (words,), and `words`,
the UTF-8 text of all words with a line break between them, uint8. A vector is scales[w] · rows[w].

A word is looked up by its stem (tokenization.py). All years have one vector, and all other numbers
have another. A stem without a vector takes that of its first five letters (`photo*`), if those have
one: rare words often share their first letters with frequent words of the same family.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from neural.core.errors import TaskError, describe_os_error
from neural.nn.lazy_torch import lazy_import
from neural.tasks.segmentation.tokenization import ElementTokens
from neural.tasks.segmentation.vector_kernels import WIDTH_MULTIPLE, sum_word_vectors

WORD_VECTORS_FILE = Path(__file__).parent / "shipped" / "word_vectors.safetensors"
WORD_VECTORS_VARIABLE = "NEURAL_WORD_VECTORS"
"""Environment variable with the path of another table, for experiments."""
PREFIX_LETTERS = 5
"""Letters of a prefix that has a vector for the words that have none."""
YEAR, NUMBER = "#year", "#number"
"""Entries of the table for years (1000 to 2099) and for all other numbers."""

safetensors_numpy = lazy_import("safetensors.numpy")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Table of word vectors."""

    row_by_word: dict[str, int]
    rows: np.ndarray
    """(words, width), int8."""
    scales: np.ndarray
    """(words,), float32."""

    @property
    def width(self) -> int:
        """Number of dimensions."""
        return self.rows.shape[1]

    @cached_property
    def version(self) -> str:
        """Checksum of the vectors: models are valid for those they were trained with."""
        return f"{zlib.crc32(self.rows.tobytes()):08x}"

    def find_row(self, stem: str) -> int:
        """Row of a stem, or of its prefix; −1 if there is none."""
        return find_row(self.row_by_word, stem)

    def unknown_share(self, tokens: ElementTokens) -> float:
        """Share of the stems, without stop words, that have no vector."""
        stems = tokens.stems
        is_unknown = stems.map_vocabulary(self.find_row) < 0
        return float(is_unknown[stems.ids].mean()) if len(stems.ids) else 0.0

    def embed_elements(self, tokens: ElementTokens) -> np.ndarray:
        """Sum of the vectors of each element's stems, (elements, width), float32."""
        stems = tokens.stems
        row_by_stem = stems.map_vocabulary(self.find_row).astype(np.int32)
        ids = row_by_stem[stems.ids] if len(stems.ids) else stems.ids
        return sum_word_vectors(ids, stems.starts, self.rows, self.scales)


def find_row(row_by_word: Mapping[str, int], stem: str) -> int:
    """Row of a stem, or of its prefix; −1 if there is none."""
    row = row_by_word.get(normalize_number(stem))
    if row is None and len(stem) > PREFIX_LETTERS:
        row = row_by_word.get(f"{stem[:PREFIX_LETTERS]}*")
    return -1 if row is None else row


def normalize_number(stem: str) -> str:
    """The entry of the table for a number; any other stem as it is."""
    if not stem[0].isdigit():
        return stem
    is_year = len(stem) == 4 and stem.isdecimal() and "1000" <= stem < "2100"
    return YEAR if is_year else NUMBER


def save_word_vectors(path: Path, words: Iterable[str], vectors: np.ndarray) -> None:
    """Write a table: every vector is rounded to int8 by its own largest number."""
    scales = np.abs(vectors).max(axis=1) / 127
    scales = np.where(scales > 0, scales, 1).astype(np.float16)
    rows = np.round(vectors / scales[:, None]).astype(np.int8)
    text = np.frombuffer("\n".join(words).encode(), np.uint8)
    safetensors_numpy.save_file({"rows": rows, "scales": scales, "words": text}, path)


def load_word_vectors(path: Path | None = None) -> WordVectors:
    """Read a table, once. TaskError if the file is missing or broken.

    The default is the file in the environment variable `NEURAL_WORD_VECTORS`, else the shipped one.
    """
    chosen = path or Path(os.environ.get(WORD_VECTORS_VARIABLE) or WORD_VECTORS_FILE)
    return _read_word_vectors(chosen)


@cache
def _read_word_vectors(path: Path) -> WordVectors:
    try:
        tensors = safetensors_numpy.load(path.read_bytes())
        words = tensors["words"].tobytes().decode().split("\n")
        rows, scales = tensors["rows"], tensors["scales"]
        if rows.dtype != np.int8 or rows.ndim != 2 or rows.shape[1] % WIDTH_MULTIPLE:
            raise ValueError(f"`rows` is {rows.dtype} of shape {rows.shape}")
        if len(words) != len(rows) or scales.shape != (len(rows),):
            raise ValueError(f"{len(words)} words, {len(rows)} rows, {len(scales)} scales")
    except OSError as error:
        raise TaskError(f"{path}: {describe_os_error(error)}") from None
    except Exception as error:  # SafetensorError is not a ValueError
        raise TaskError(f"{path} is not a valid file of word vectors: {error}") from None
    row_by_word = {word: row for row, word in enumerate(words)}
    return WordVectors(row_by_word, np.ascontiguousarray(rows), scales.astype(np.float32))
