"""Change of meaning across each gap, by sentence embeddings at several scales.

A gap is the place between an element (sentence or line) and the one before it; its two sides are
the `scale` elements before it and after it.

The package `wordllama` contains 32,000 subword embeddings of 256 dimensions; nothing is downloaded.
A sentence is the mean of its subwords. Without the package, stems are hashed into 256 bins, which
captures words but not meanings.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature, windowed_mean
from neural.tasks.segmentation.features.hashed import hash_stems
from neural.tasks.segmentation.tokenization import ElementTokens
from neural.tasks.segmentation.vector_kernels import compare_sides

SCALES = (1, 2, 3, 5, 8, 13, 20)
"""Numbers of elements on either side of a gap that are compared."""
NEIGHBOURHOOD_GAPS = 32
"""Number of gaps on either side over which the local mean and deviation are taken."""
EMBEDDING_DIM = 256
ELEMENTS_PER_BATCH = 4096
"""Elements that are tokenized together."""


class Embedded(Feature):
    """Comparison of the mean embeddings on both sides of the gap before an element, per scale.

    `cosine` is their cosine. `unusual` is its z-score among the neighbouring gaps, clipped to ± 4.
    `parted` is by how much the squared error of the embeddings decreases if each side is described
    by its own mean instead of one common mean. The mean embedding of the document is subtracted
    first, which removes what all its sentences have in common.
    """

    version: ClassVar[int] = 2
    columns: ClassVar[tuple[str, ...]] = tuple(
        f"{kind}_{scale}" for kind in ("cosine", "unusual", "parted") for scale in SCALES
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Columns of all scales, by cumulative sums: the time does not depend on the scale."""
        vectors = (
            _embed_elements(document.elements)
            if _load_embedding()
            else hash_stems(tokens.stems, EMBEDDING_DIM)
        )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths > 1e-9, lengths, 1)
        centred = vectors - vectors.mean(axis=0)
        cosines, parted = np.ones((2, len(document), len(SCALES)))
        for column, scale in enumerate(SCALES):
            cosines[:, column], parted[:, column] = compare_sides(centred, scale)
        mean = windowed_mean(cosines, NEIGHBOURHOOD_GAPS)
        std = np.sqrt(np.maximum(windowed_mean(cosines**2, NEIGHBOURHOOD_GAPS) - mean**2, 0))
        # Local z-score; 0.05 avoids large values where the cosine hardly varies.
        unusual = np.clip((cosines - mean) / (std + 0.05), -4, 4)
        unusual[0] = 0
        return np.concatenate([cosines, unusual, parted], axis=1)

    @classmethod
    def dependency_version(cls) -> str:
        """Version of the package, or the name of the fallback."""
        try:
            return f"wordllama {version('wordllama')}"
        except PackageNotFoundError:
            return "bins of words"


@cache
def _load_embedding() -> tuple[Any, np.ndarray] | None:
    """Tokenizer and embedding table of the package; None if it is not installed."""
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        return None
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    # Read the files of the package directly: importing the package would configure logging.
    folder = Path(spec.submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(
        str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    )
    tokenizer.no_padding()
    tokenizer.no_truncation()
    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    return tokenizer, table.astype(np.float32)


def _embed_elements(elements: tuple[str, ...]) -> np.ndarray:
    """Mean embedding of each element's subwords; zeros for an element without any."""
    embedding = _load_embedding()
    assert embedding is not None
    tokenizer, table = embedding
    vectors = np.zeros((len(elements), EMBEDDING_DIM), np.float32)
    for first in range(0, len(elements), ELEMENTS_PER_BATCH):
        # The tokenizer rejects lone surrogates (invalid Unicode); "replace" turns them into "?".
        batch = [
            element.encode("utf-8", "replace").decode()
            for element in elements[first : first + ELEMENTS_PER_BATCH]
        ]
        for row, encoding in enumerate(
            tokenizer.encode_batch_fast(batch, add_special_tokens=False), start=first
        ):
            if encoding.ids:
                vectors[row] = table[encoding.ids].mean(axis=0)
    return vectors
