"""Characters → ids, always by the same table, so that a trained network needs no dictionary beside it.

A network with fewer than 256 ids reads 96 characters: the newline and printable ASCII, in this order; any other
character becomes a question mark. With 256 ids or more it reads the bytes of UTF-8, which hold any language. Where
the network has a `pad_id` that is one of these numbers, all from there on move up by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neural.language.network import Network
from neural.tasks.data.check import padding, vocabulary
from neural.tasks.task import TaskError

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
SHOWN = {"\n": "⏎", " ": "␣"}


@dataclass(frozen=True)
class Alphabet:
    """A table of characters or bytes."""

    count: int
    """96 characters or 256 bytes."""
    pad: int | None

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text."""
        plain = text.replace("\r\n", "\n")
        if self.count == 256:
            ids = np.frombuffer(plain.encode("utf-8", errors="replace"), dtype=np.uint8)
        else:
            letters = np.frombuffer(plain.encode("latin-1", errors="replace"), dtype=np.uint8)
            table = np.full(256, CHARACTERS.index("?"), dtype=np.uint8)
            table[[ord(letter) for letter in CHARACTERS]] = np.arange(len(CHARACTERS))
            ids = table[letters]
        return ids if self.pad is None else ids.astype(np.int16) + (ids >= self.pad)

    def unknown(self, text: str) -> int:
        """How many characters of a text become question marks."""
        if self.count == 256:
            return 0
        plain = text.replace("\r\n", "\n")
        return sum(plain.count(letter) for letter in set(plain) - set(CHARACTERS))

    @property
    def tokens(self) -> tuple[str, ...]:
        """What to write for each id."""
        letters = CHARACTERS if self.count == len(CHARACTERS) else map(chr, range(256))
        shown = [SHOWN.get(one, one if one in CHARACTERS else f"x{ord(one):02x}") for one in letters]
        if self.pad is not None and self.pad <= len(shown):
            shown.insert(self.pad, "·")
        return tuple(shown)


def alphabet_of(network: Network, where: str) -> Alphabet:
    """The table for a network's ids; TaskError where they are too few, or where it takes no ids."""
    if not network.ids:
        raise TaskError(
            f"{where}: text is read as ids, but {network.name} takes features; "
            "begin with `Embedding(input_dim=96, output_dim=…)` and `input: (length,)`"
        )
    ids, pad = vocabulary(network), padding(network)
    count = 256 if ids - (pad is not None and pad <= 256) >= 256 else len(CHARACTERS)
    needed = count + (pad is not None and pad <= count)
    if ids < needed:
        raise TaskError(f"{where}: text needs {needed} ids, but `Embedding` has {ids}; write `input_dim={needed}`")
    return Alphabet(count, pad)
