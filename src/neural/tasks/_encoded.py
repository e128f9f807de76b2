"""A text as ids: made once, and kept on disk where it is long, so that a text larger than the memory can be learned.

A short text is encoded anew every time. A long one becomes two files in the cache: `….npy` with the ids, which is
mapped into memory, and `….json` with what is known about them, written last. They are used as long as the text's
files have the same names, sizes and times, and replaced afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.files import replacing, write_atomically
from neural.tasks._text import State, Text
from neural.tasks.data.downloads import cache
from neural.tasks.task import TaskError

LONG = 1 << 24
"""Bytes from which on a text is kept on disk."""
CODE_POINTS = 0x110000


@dataclass(frozen=True)
class Encoded:
    """The ids of a text, and what they stand for."""

    ids: np.ndarray
    """uint8 where there are at most 256 of them, else wider; mapped from disk where the text is long."""
    characters: str | None
    """In the order of their ids, which is that of their code points; None where ids are bytes."""
    first_seen: tuple[int, ...]
    """Where in the text each character stands first."""
    fingerprint: str
    """The same for the same text."""


def encoded(text: Text) -> Encoded:
    """The whole text; TaskError where it cannot be read, is empty, or changes meanwhile."""
    state = text.state()
    long = text.size >= LONG
    found = _kept(text, state) if long else None
    if found is None:
        found = _keep(text, state) if long else _in_memory(text)
        if text.state() != state:
            raise TaskError(f"{text.name} changed while it was read; start again")
    if not len(found.ids):
        raise TaskError(f"{text.name} is empty: there is nothing to learn")
    return found


class _Plan:
    """What must be known before the first id is written, and then the ids."""

    def __init__(self, text: Text) -> None:
        self.text, self.dtype, self.count = text, np.dtype(np.uint8), text.size
        self.first_seen: dict[int, int] = {}
        """Code points, sorted, and where each stands first."""
        self.characters: str | None = None
        if text.units == "characters":
            self.count, self.first_seen = _survey(text.codes())
            self.dtype = np.min_scalar_type(max(0, len(self.first_seen) - 1))
            self.characters = "".join(map(chr, self.first_seen))
        self.digest = blake2b(f"{text.units} {self.characters}".encode(), digest_size=16)

    def ids(self) -> Iterator[np.ndarray]:
        """Piece after piece."""
        table = np.zeros(CODE_POINTS if self.first_seen else 256, dtype=self.dtype)
        table[list(self.first_seen) or slice(None)] = np.arange(len(self.first_seen) or 256)
        for codes in self.text.codes():
            piece = table[codes]
            self.digest.update(piece.data)
            yield piece

    def facts(self) -> dict[str, Any]:
        """What is known of the ids, once all were given."""
        first_seen = list(self.first_seen.values())
        known = {"count": self.count, "characters": self.characters, "first_seen": first_seen}
        return {**known, "fingerprint": self.digest.hexdigest()}


def _survey(codes: Iterator[np.ndarray]) -> tuple[int, dict[int, int]]:
    """How long a text is, and which characters it has."""
    count, first_seen, seen = 0, {}, np.zeros(CODE_POINTS, dtype=bool)
    for piece in codes:
        places = np.flatnonzero(~seen[piece])
        if len(places):
            fresh, index = np.unique(piece[places], return_index=True)
            first_seen |= zip(fresh.tolist(), (count + places[index]).tolist(), strict=True)
            seen[fresh] = True
        count += len(piece)
    return count, dict(sorted(first_seen.items()))


def _in_memory(text: Text) -> Encoded:
    plan = _Plan(text)
    ids = np.concatenate([np.zeros(0, dtype=plan.dtype), *plan.ids()])
    return _encoded(ids, plan.facts())


def _keep(text: Text, state: State) -> Encoded:
    plan = _Plan(text)
    path, about = _places(text)
    header = {"descr": np.lib.format.dtype_to_descr(plan.dtype), "fortran_order": False, "shape": (plan.count,)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            np.lib.format.write_array_header_1_0(file, header)
            for piece in plan.ids():
                file.write(piece.data)
        write_atomically(about, json.dumps({"state": state, **plan.facts()}))
    except OSError as problem:
        where = f"{text.name} cannot be kept in {path.parent}"
        raise TaskError(f"{where}: {problem.strerror or problem}; NEURAL_CACHE names another folder") from None
    found = _mapped(path, plan.facts())
    if found is None:
        raise TaskError(f"{text.name} changed while it was read; start again")
    return found


def _kept(text: Text, state: State) -> Encoded | None:
    """What an earlier run left, if it is of this text as it is now."""
    path, about = _places(text)
    try:
        facts = json.loads(about.read_text(encoding="utf-8"))
        return _mapped(path, facts) if facts["state"] == [list(one) for one in state] else None
    except (OSError, ValueError, LookupError, TypeError):   # of another version, or of a disk that lost a piece of it
        return None


def _mapped(path: Path, facts: dict[str, Any]) -> Encoded | None:
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError):
        return None
    return _encoded(ids, facts) if len(ids) == facts["count"] else None


def _encoded(ids: np.ndarray, facts: dict[str, Any]) -> Encoded:
    return Encoded(ids, facts["characters"], tuple(facts["first_seen"]), facts["fingerprint"])


def _places(text: Text) -> tuple[Path, Path]:
    name = blake2b(f"{text.units} {text.said}".encode(), digest_size=10).hexdigest()
    folder = cache() / "texts"
    return folder / f"{name}.npy", folder / f"{name}.json"
