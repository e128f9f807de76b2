"""Mutations of bytes; tests/language/test_fuzz.py has its own for program texts."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
EXTREME_VALUES = [
    b"0",
    b"-1",
    b"1e400",
    b"9" * 40,
    b"2147483648",
    b"-9223372036854775809",
    b"1000000000000",
    b"0.5",
    b"NaN",
    b"true",
    b"null",
    b'"x"',
    b"[]",
    b"{}",
    b"1" * 5000,
]
ODD_BYTES = [
    b"\0",
    b"\xff",
    b"\x80",
    b"\x1b[2J",
    b"\r\n",
    b"\\ud800",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    "é名🙂".encode(),
    b"[" * 50,
    b'{"a":' * 50,
    b"../" * 4,
    b"'\"",
]
MAX_FILE_BYTES = 1 << 16


class Mutator:
    """Random mutations of seed files; equal seeds give equal files."""

    def __init__(self, seeds: Sequence[bytes], words: Sequence[bytes], seed: int) -> None:
        self.random, self.seeds, self.words = random.Random(seed), list(seeds), [*words, *ODD_BYTES]
        self.mutations = [
            self.flip,
            self.flip,
            self.set_byte,
            self.set_number,
            self.drop,
            self.repeat,
            self.insert,
            self.move,
            self.change_number,
            self.change_number,
            self.truncate,
            self.splice,
        ]

    def next(self) -> bytes:
        """The next broken file."""
        data = self.random.choice(self.seeds)
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 8])):
            data = self.random.choice(self.mutations)(data)
        return data[:MAX_FILE_BYTES]

    def random_offset(self, data: bytes) -> int:
        return self.random.randrange(len(data) + 1)

    def random_range(self, data: bytes) -> tuple[int, int]:
        """A range of bytes, usually a short one."""
        start = self.random_offset(data)
        return start, min(len(data), start + self.random.choice([1, 2, 4, 8, 32, 256]))

    def flip(self, data: bytes) -> bytes:
        offset = self.random_offset(data)
        return (
            data[:offset]
            + bytes(byte ^ 1 << self.random.randrange(8) for byte in data[offset : offset + 1])
            + data[offset + 1 :]
        )

    def set_byte(self, data: bytes) -> bytes:
        offset = self.random_offset(data)
        return (
            data[:offset]
            + bytes([self.random.choice([0, 1, 127, 128, 255, 32, 10])])
            + data[offset + 1 :]
        )

    def set_number(self, data: bytes) -> bytes:
        """Set a binary number of 2, 4 or 8 bytes to an extreme value."""
        offset, size = self.random_offset(data), self.random.choice([2, 4, 8])
        value = self.random.choice(
            [0, 1, 1 << 8 * size - 1, (1 << 8 * size) - 1, (1 << 8 * size - 1) - 1, 1 << 20]
        )
        order = self.random.choice(["little", "big"])
        return (
            data[:offset] + (value % (1 << 8 * size)).to_bytes(size, order) + data[offset + size :]
        )

    def drop(self, data: bytes) -> bytes:
        start, end = self.random_range(data)
        return data[:start] + data[end:]

    def repeat(self, data: bytes) -> bytes:
        start, end = self.random_range(data)
        return data[:end] + data[start:end] * self.random.choice([1, 2, 40]) + data[end:]

    def insert(self, data: bytes) -> bytes:
        offset = self.random_offset(data)
        return data[:offset] + self.random.choice(self.words) + data[offset:]

    def move(self, data: bytes) -> bytes:
        start, end = self.random_range(data)
        rest, moved = data[:start] + data[end:], data[start:end]
        offset = self.random_offset(rest)
        return rest[:offset] + moved + rest[offset:]

    def change_number(self, data: bytes) -> bytes:
        """Replace a decimal number by another kind of value."""
        numbers = list(NUMBER.finditer(data[: 1 << 12]))
        if not numbers:
            return self.flip(data)
        number = self.random.choice(numbers)
        return data[: number.start()] + self.random.choice(EXTREME_VALUES) + data[number.end() :]

    def truncate(self, data: bytes) -> bytes:
        return data[: self.random_offset(data)]

    def splice(self, data: bytes) -> bytes:
        other = self.random.choice(self.seeds)
        return data[: self.random_offset(data)] + other[self.random_offset(other) :]
