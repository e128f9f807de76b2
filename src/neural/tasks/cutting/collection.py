"""What the user wrote as `data` → documents to train on, documents that judge, documents nobody looks at.

    collection("handbook")                    the topics of Python's help(), composed, with nothing to download
    collection("songs.jsonl", folder)         a file, or a folder of files of one kind
    collection("articles/", folder, compose=500)   new documents made of pieces of these

Files or folders called train, valid and test keep that meaning; otherwise documents are shared out by the seed, equal
ones to one part. A document that the data itself has in two parts is refused, unless `allow_duplicates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural.core.names import did_you_mean
from neural.tasks.cutting.compose import compose as composed
from neural.tasks.cutting.data import registry
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.duplicates import (
    document_hash,
    find_across,
    group_equal,
    list_names,
    shared_elements,
    shared_note,
    without_repeats,
)
from neural.tasks.cutting.elements import Unit, spans
from neural.tasks.cutting.reader import Reader, Reading
from neural.tasks.data.split import generator
from neural.tasks.task import TaskError

SPLITS = {"train": ("train", "training"), "valid": ("valid", "val", "validation", "dev"), "test": ("test",)}
"""What files and folders of a part may be called."""
NAMES = ("handbook",)
"""Collections that are known by name."""
HANDBOOK_DOCUMENTS = 200
"""Documents composed of the handbook's topics, unless somebody says otherwise."""


@dataclass(frozen=True)
class Collection:
    """Documents, shared out; none is in two parts, unless that was allowed."""

    name: str
    train: tuple[Document, ...]
    valid: tuple[Document, ...]
    test: tuple[Document, ...]
    remarks: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """Words that labels stand for, in the order of their numbers, where labels are words."""
    sources: tuple[tuple[Document, ...], ...] = ()
    """Of composed documents: the texts that those of each part were made of."""

    def hashes(self) -> dict[str, list[str]]:
        """Of all documents that training sees, and of their sources: `train`, and `valid`."""
        sources = self.sources or ((), (), ())
        parts = {"train": (*self.train, *sources[0]), "valid": (*self.valid, *sources[1])}
        return {name: sorted({document_hash(document) for document in part}) for name, part in parts.items()}

    @property
    def documents(self) -> tuple[Document, ...]:
        """All of them."""
        return self.train + self.valid + self.test


def collection(
    data: str | Path, folder: Path | None = None, *, reading: Reading | None = None, compose: int = 0,
    valid: float = 0.1, test: float = 0.1, seed: int = 0, allow_duplicates: bool = False,
) -> Collection:  # fmt: skip
    """The documents; TaskError where there are none. Paths are seen from `folder`.

    `compose`: not the documents themselves but so many made of pieces of them, shared out in the same way, each from
    sources that the other parts do not have. `valid` and `test` are shares. `allow_duplicates`: take data that has the
    same document in two of its own parts, and say so.
    """
    reading = reading or Reading()
    if data in NAMES:
        texts = without_repeats([Document(name, elements) for name, elements in handbook(reading.unit)])
        shares = _shared_out(texts, valid, test, seed)
        return _composed("handbook", shares, compose or HANDBOOK_DOCUMENTS, seed, ())
    path = ((folder or Path()) / Path(data).expanduser()).absolute()
    if not path.exists():
        help_ = did_you_mean(str(data), NAMES) or f"known by name: {', '.join(NAMES)}"
        raise TaskError(f"there is no data `{data}`: no such file or folder in {path.parent}; {help_}")
    kind, files = _files(path)
    found: dict[str, list[Document]] = {}
    remarks: list[str] = []
    for file in files:
        documents, said = kind.read(file, reading)
        found.setdefault(_split_of(file, path), []).extend(documents)
        remarks += said
    everything = tuple(found.get("", ()))
    if "train" in found:
        if everything:
            remarks.append(f"{path.name}: {len(everything)} documents outside train, valid and test are not used")
        shares = [tuple(found.get(split, ())) for split in SPLITS]
        if not shares[1]:
            shares[:2] = _shared_out(shares[0], valid, 0, seed)[:2]
        remarks += _check_duplicates(path.name, shares, allow=allow_duplicates)
    else:
        everything = tuple(one for documents in found.values() for one in documents)
        shares = _shared_out(everything, valid, test, seed)
        copies = len(everything) - len(group_equal(everything))
        if copies and (shares[1] or shares[2]):
            count = f"{copies:,} of {len(everything):,} documents occur before"
            remarks.append(f"{path.name}: {count}; equal documents are in one part")
    remarks += shared_note(path.name, shared_elements((*shares[1], *shares[2]), shares[0]))
    if compose:
        return _composed(path.name, shares, compose, seed, tuple(remarks))
    return Collection(path.name, *shares, remarks=tuple(remarks), labels=tuple(reading.labels))


def _check_duplicates(name: str, shares: Sequence[Sequence[Document]], *, allow: bool) -> list[str]:
    """Refuse documents that are in two parts, or say which they are."""
    across = find_across(dict(zip(SPLITS, shares, strict=True)))
    if not across:
        return []
    count = f"{len(across):,} document{'s are' if len(across) > 1 else ' is'}"
    message = f"{name}: {count} in two parts: {list_names(across)}"
    if allow:
        return [f"{message}; the scores flatter"]
    raise TaskError(f"{message}; remove one of each, or write `allow_duplicates: true`")


def documents(data: str | Path, folder: Path | None = None, *, reading: Reading | None = None) -> list[Document]:
    """All documents of a file or a folder, in the order of their names; of the handbook, those for training."""
    return list(collection(data, folder, reading=reading, valid=0, test=0).documents)


def handbook(unit: Unit = "sentences") -> list[tuple[str, tuple[str, ...]]]:
    """The topics of Python's `help()` by name, each cut into elements; the wording follows the Python version."""
    from pydoc_data.topics import topics  # half a megabyte that only this needs

    return [(name, tuple(topics[name][a:b] for a, b in spans(topics[name], unit))) for name in sorted(topics)]


def _files(path: Path) -> tuple[type[Reader], list[Path]]:
    """The one kind of documents there, and its files in the order of their names."""
    kinds = [registry.get(name) for name in registry.names()]
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    visible = [one for one in inside if one.is_file() and not _hidden(one, path)]
    by_kind = {kind: [one for one in visible if one.suffix.lower() in kind.suffixes] for kind in kinds}
    fitting = {kind: files for kind, files in by_kind.items() if files}
    if len(fitting) == 1:
        return next(iter(fitting.items()))
    if fitting:
        found = " and ".join(files[0].name for files in fitting.values())
        raise TaskError(f"{path.name} has documents of several kinds, as {found}; keep one kind in a folder")
    listed = "\n".join(f"  {kind.looks}" for kind in kinds)
    raise TaskError(f"{path.name} holds no documents that can be read; known are\n{listed}")


def _hidden(file: Path, path: Path) -> bool:
    return file != path and any(part.startswith(".") for part in file.relative_to(path).parts)


def _split_of(file: Path, path: Path) -> str:
    """Which part a file belongs to by its name or by the folder it lies in; "" where they do not say."""
    parts = file.relative_to(path).with_suffix("").parts if file != path else ()
    said = {part.lower() for part in parts}
    return next((split for split, names in SPLITS.items() if said & set(names)), "")


def _shared_out(found: Sequence[Document], valid: float, test: float, seed: int) -> list[tuple[Document, ...]]:
    """Training, validation, test: shares of the distinct texts, each with all its copies.

    A share above 0 gives at least one text, while one is left to train on.
    """
    texts = group_equal(found)
    order = generator(seed, 0, purpose=3).permutation(len(texts))
    spare = len(texts) - 1
    judging = min(max(1, round(len(texts) * valid)) if valid > 0 else 0, spare)
    hidden = min(max(1, round(len(texts) * test)) if test > 0 else 0, spare - judging)
    parts = np.split(order, [len(texts) - judging - hidden, len(texts) - hidden])
    return [tuple(found[at] for at in sorted(at for text in part for at in texts[text])) for part in parts]


def _composed(
    name: str, shares: Sequence[Sequence[Document]], count: int, seed: int, remarks: tuple[str, ...]
) -> Collection:
    """Composed documents for every part that has sources, in the parts' proportions."""
    whole = sum(map(len, shares))
    made = []
    for number, (split, sources) in enumerate(zip(SPLITS, shares, strict=True)):
        wanted = max(1, round(count * len(sources) / whole)) if sources else 0
        try:
            texts = [one.elements for one in sources]
            made.append(tuple(composed(texts, wanted, seed=3 * seed + number)) if wanted else ())
        except ValueError as wrong:
            raise TaskError(f"{name}, {split}: {wrong}") from None
    return Collection(name, *made, remarks=remarks, sources=tuple(map(tuple, shares)))
