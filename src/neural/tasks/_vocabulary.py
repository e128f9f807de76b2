"""Which id stands for which character."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neural.tasks._encoded import Encoded
from neural.tasks.data.alphabet import SHOWN
from neural.tasks.task import TaskError


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Characters by their ids, or bytes, which are their own ids."""

    characters: str | None
    """In the order of their ids; None: bytes."""
    table: np.ndarray
    """From the ids that a text was encoded with to those that a network takes."""

    @classmethod
    def of(cls, found: Encoded, said: str | None, where: str) -> Vocabulary:
        """The text's own, or the one that was said, which may hold more; TaskError where it lacks a character."""
        if found.characters is None:
            return cls(None, np.arange(256))
        characters = said or found.characters
        ids = {character: number for number, character in enumerate(characters)}
        lacking = [place for place, one in enumerate(found.characters) if one not in ids]
        if lacking:
            first = min(lacking, key=lambda place: found.first_seen[place])
            raise TaskError(
                f"{where}: {found.characters[first]!r} at character {found.first_seen[first]:,} "
                f"is not among the {len(characters)} of `vocabulary`"
                + (f", nor are {len(lacking) - 1} others" if len(lacking) > 1 else "")
            )
        return cls(characters, np.array([ids[one] for one in found.characters], dtype=np.int64))

    @property
    def size(self) -> int:
        """How many ids there are."""
        return 256 if self.characters is None else len(self.characters)

    def written(self) -> list[str] | str:
        """As a run keeps it: a list of characters, or "bytes"."""
        return "bytes" if self.characters is None else list(self.characters)

    def label(self, number: int) -> str:
        """What to write beside a map."""
        if number >= self.size:
            return str(number)
        one = chr(number) if self.characters is None else self.characters[number]
        visible = one.isprintable() and (self.characters is not None or number < 128)
        return SHOWN.get(one, one if visible else f"x{ord(one):02x}")
