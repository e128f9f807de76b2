"""Characters → token ids by a fixed table (alphabet): no vocabulary is saved with a network.

A network with fewer than 256 ids reads 96 characters: newline and printable ASCII, in this order;
any other character becomes a question mark. With 256 ids or more it reads UTF-8 bytes. If `pad_id`
is one of these ids, all ids from there on move up by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.data.input_checks import get_pad_id, get_vocabulary_size
from neural.data.source import Examples
from neural.language.network import Network

if TYPE_CHECKING:
    from neural.data.source import Arrays

ASCII_CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
"""Newline and printable ASCII, by token id."""
VISIBLE_WHITESPACE = {"\n": "⏎", " ": "␣"}
"""Symbols for whitespace in displayed tokens."""


@dataclass(frozen=True)
class Alphabet:
    """Fixed vocabulary of characters or bytes."""

    size: int
    """96 (characters) or 256 (bytes)."""
    pad_id: int | None
    """Padding id of the network's `Embedding`; the ids of characters skip it."""

    def encode(self, text: str) -> np.ndarray:
        """Token ids of a text, one per character or byte."""
        normalized = text.replace("\r\n", "\n")
        if self.size == 256:
            ids = np.frombuffer(normalized.encode("utf-8", errors="replace"), dtype=np.uint8)
        else:
            character_codes = np.frombuffer(
                normalized.encode("latin-1", errors="replace"), dtype=np.uint8
            )
            ids_by_code = np.full(256, ASCII_CHARACTERS.index("?"), dtype=np.uint8)
            ids_by_code[[ord(character) for character in ASCII_CHARACTERS]] = np.arange(
                len(ASCII_CHARACTERS)
            )
            ids = ids_by_code[character_codes]
        # Ids from `pad_id` on move up by one.
        return ids if self.pad_id is None else ids.astype(np.int16) + (ids >= self.pad_id)

    def count_unknown(self, text: str) -> int:
        """Number of characters that become question marks."""
        if self.size == 256:
            return 0
        normalized = text.replace("\r\n", "\n")
        return sum(
            normalized.count(character) for character in set(normalized) - set(ASCII_CHARACTERS)
        )

    @property
    def tokens(self) -> tuple[str, ...]:
        """Label of each id; newline and space are shown as symbols, padding as `·`."""
        characters = (
            ASCII_CHARACTERS if self.size == len(ASCII_CHARACTERS) else map(chr, range(256))
        )
        labels = [
            VISIBLE_WHITESPACE.get(
                character, character if character in ASCII_CHARACTERS else f"x{ord(character):02x}"
            )
            for character in characters
        ]
        if self.pad_id is not None and self.pad_id <= len(labels):
            labels.insert(self.pad_id, "·")
        return tuple(labels)


def select_alphabet(network: Network, data_name: str) -> Alphabet:
    """The alphabet for the number of ids in a network's `Embedding`.

    Raises TaskError if the network has too few ids or takes none; `data_name` is for the message.
    """
    if not network.takes_token_ids:
        raise TaskError(
            f"{data_name}: text is read as token ids, but {network.name} takes features; "
            "start with `Embedding(input_dim=96, output_dim=…)` and `input: (length,)`"
        )
    id_count, pad_id = get_vocabulary_size(network), get_pad_id(network)
    # A padding id among the characters' ids takes one of the ids; one behind them does not.
    size = (
        256 if id_count - (pad_id is not None and pad_id <= 256) >= 256 else len(ASCII_CHARACTERS)
    )
    needed = size + (pad_id is not None and pad_id <= size)
    if id_count < needed:
        raise TaskError(
            f"{data_name}: text needs {needed} ids, but `Embedding` has {id_count}; "
            f"write `input_dim={needed}`"
        )
    return Alphabet(size, pad_id)


DEFAULT_WINDOW_LENGTH = 128
"""Window length in characters, if the network leaves it open."""


def next_character_examples(text: str, network: Network, data_name: str) -> Examples:
    """Adjacent windows of a text, for next-character prediction.

    They are `ordered`: the end of the text is held out for validation.
    """
    if network.is_encoder_decoder:
        raise TaskError(f"{data_name} is one text, but {network.name} takes two sequences")
    alphabet = select_alphabet(network, data_name)
    length = network.input[0] if isinstance(network.input[0], int) else DEFAULT_WINDOW_LENGTH
    ids, unknown_count = alphabet.encode(text), alphabet.count_unknown(text)
    if len(ids) <= length:
        raise TaskError(
            f"{data_name} has {len(ids)} characters; a window of {length} needs at least "
            f"{length + 1}"
        )
    notes = (
        [f"{data_name}: {unknown_count:,} characters outside printable ASCII are read as `?`"]
        if unknown_count
        else []
    )
    return Examples(
        data_name=data_name,
        train=split_windows(ids, length),
        ordered=True,
        tokens=alphabet.tokens,
        notes=tuple(notes),
    )


def split_windows(ids: np.ndarray, length: int) -> Arrays:
    """Adjacent windows `x`, (windows, length), and `y`, the same one token later.

    An incomplete last window is dropped.
    """
    count = (len(ids) - 1) // length
    return {
        "x": ids[: count * length].reshape(count, length),
        "y": ids[1 : count * length + 1].reshape(count, length),
    }
