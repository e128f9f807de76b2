"""Is the meaning before a gap another than after it? By sentence vectors, at several scales.

`pip install wordllama` brings 32,000 word pieces with 256 numbers each, inside the package: nothing is downloaded. A
sentence is the mean of its pieces. Without the package, words are thrown into 256 bins, which knows no meanings.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature, windowed_mean
from neural.tasks.cutting.features.hashed import thrown
from neural.tasks.cutting.words import Words

SCALES = (1, 2, 3, 5, 8, 13, 20)
"""Elements on either side of a gap."""
AROUND = 32
"""Gaps on either side that a gap is compared with."""
WIDTH = 256
AT_ONCE = 4096
"""Elements whose pieces are in memory together."""


class Embedded(Feature):
    """For every scale: the cosine of both sides, how far it is from usual, and what one mean for both sides would lose.

    Vectors are taken from the mean of the document, so that what all its sentences share says nothing.
    """

    columns: ClassVar[tuple[str, ...]] = tuple(
        f"{kind}_{scale}" for kind in ("cosine", "unusual", "parted") for scale in SCALES
    )

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """By running sums: the time does not depend on the scale."""
        vectors = _meanings(document.elements) if _pieces() else thrown(words.stems, WIDTH)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths > 1e-9, lengths, 1)
        sums = np.concatenate([np.zeros((1, WIDTH)), np.cumsum(vectors - vectors.mean(axis=0), axis=0)])
        cosines, parted = np.ones((2, len(document), len(SCALES)))
        for column, scale in enumerate(SCALES):
            cosines[:, column], parted[:, column] = _sides(sums, scale)
        usual = windowed_mean(cosines, AROUND)
        spread = np.sqrt(np.maximum(windowed_mean(cosines**2, AROUND) - usual**2, 0))
        unusual = np.clip((cosines - usual) / (spread + 0.05), -4, 4)
        unusual[0] = 0
        return np.concatenate([cosines, unusual, parted], axis=1)

    @classmethod
    def made_with(cls) -> str:
        """The package, or that there was none."""
        try:
            return f"wordllama {version('wordllama')}"
        except PackageNotFoundError:
            return "bins of words"


def _sides(sums: np.ndarray, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine of the two sides of every gap; by how much two means fit better than one. 1 and 0 at the first element."""
    count = len(sums) - 1
    gap = np.arange(count)
    low, high = np.maximum(gap - scale, 0), np.minimum(gap + scale, count)
    left, right = sums[gap] - sums[low], sums[high] - sums[gap]
    size_left, size_right = np.einsum("nw,nw->n", left, left), np.einsum("nw,nw->n", right, right)
    product = np.einsum("nw,nw->n", left, right)
    cosine = product / np.sqrt(np.maximum(size_left * size_right, 1e-18))
    together = (size_left + size_right + 2 * product) / (high - low)
    parted = size_left / np.maximum(gap - low, 1) + size_right / (high - gap) - together
    cosine[0], parted[0] = 1, 0
    return cosine, parted


@cache
def _pieces() -> tuple[Any, np.ndarray] | None:
    """The package's tokenizer and its table of vectors; None where it is not there."""
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        return None
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(found.submodule_search_locations[0])   # read as files: importing the package sets up logging
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    return tokenizer, table.astype(np.float32)


def _meanings(elements: tuple[str, ...]) -> np.ndarray:
    """The mean of the vectors of an element's pieces; zeros where there are none."""
    pieces = _pieces()
    assert pieces is not None
    tokenizer, table = pieces
    found = np.zeros((len(elements), WIDTH), np.float32)
    for first in range(0, len(elements), AT_ONCE):
        # the tokenizer takes no halves of characters
        some = [one.encode("utf-8", "replace").decode() for one in elements[first : first + AT_ONCE]]
        for row, one in enumerate(tokenizer.encode_batch_fast(some, add_special_tokens=False), start=first):
            if one.ids:
                found[row] = table[one.ids].mean(axis=0)
    return found

