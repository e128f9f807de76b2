"""Breaks bytes, a little or a lot; the texts of programs have ways of their own in tests/language/test_fuzz.py."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
EXTREME = [
    b"0", b"-1", b"1e400", b"9" * 40, b"2147483648", b"-9223372036854775809", b"1000000000000", b"0.5", b"NaN", b"true",
    b"null", b'"x"', b"[]", b"{}", b"1" * 5000,
]  # fmt: skip
ODD = [
    b"\0", b"\xff", b"\x80", b"\x1b[2J", b"\r\n", b"\\ud800", b"\xed\xa0\x80", b"\xef\xbb\xbf", "é名🙂".encode(),
    b"[" * 50, b'{"a":' * 50, b"../" * 4, b"'\"",
]  # fmt: skip
LONGEST = 1 << 16


class Mutator:
    """Random changes to some seeds; the same numbers give the same changes."""

    def __init__(self, seeds: Sequence[bytes], words: Sequence[bytes], seed: int) -> None:
        self.random, self.seeds, self.words = random.Random(seed), list(seeds), [*words, *ODD]
        self.ways = [
            self.flip, self.flip, self.set_byte, self.set_number, self.drop, self.repeat, self.insert, self.move,
            self.change_number, self.change_number, self.truncate, self.splice,
        ]  # fmt: skip

    def next(self) -> bytes:
        """One more broken file."""
        data = self.random.choice(self.seeds)
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 8])):
            data = self.random.choice(self.ways)(data)
        return data[:LONGEST]

    def at(self, data: bytes) -> int:
        return self.random.randrange(len(data) + 1)

    def piece(self, data: bytes) -> tuple[int, int]:
        """A stretch, mostly a short one."""
        start = self.at(data)
        return start, min(len(data), start + self.random.choice([1, 2, 4, 8, 32, 256]))

    def flip(self, data: bytes) -> bytes:
        at = self.at(data)
        return data[:at] + bytes(one ^ 1 << self.random.randrange(8) for one in data[at : at + 1]) + data[at + 1 :]

    def set_byte(self, data: bytes) -> bytes:
        at = self.at(data)
        return data[:at] + bytes([self.random.choice([0, 1, 127, 128, 255, 32, 10])]) + data[at + 1 :]

    def set_number(self, data: bytes) -> bytes:
        """A binary number of 2, 4 or 8 bytes becomes a very large, a small or a negative one."""
        at, size = self.at(data), self.random.choice([2, 4, 8])
        value = self.random.choice([0, 1, 1 << 8 * size - 1, (1 << 8 * size) - 1, (1 << 8 * size - 1) - 1, 1 << 20])
        order = self.random.choice(["little", "big"])
        return data[:at] + (value % (1 << 8 * size)).to_bytes(size, order) + data[at + size :]

    def drop(self, data: bytes) -> bytes:
        start, end = self.piece(data)
        return data[:start] + data[end:]

    def repeat(self, data: bytes) -> bytes:
        start, end = self.piece(data)
        return data[:end] + data[start:end] * self.random.choice([1, 2, 40]) + data[end:]

    def insert(self, data: bytes) -> bytes:
        at = self.at(data)
        return data[:at] + self.random.choice(self.words) + data[at:]

    def move(self, data: bytes) -> bytes:
        start, end = self.piece(data)
        rest, piece = data[:start] + data[end:], data[start:end]
        at = self.at(rest)
        return rest[:at] + piece + rest[at:]

    def change_number(self, data: bytes) -> bytes:
        """A written number becomes another kind of value."""
        found = list(NUMBER.finditer(data[: 1 << 12]))
        if not found:
            return self.flip(data)
        one = self.random.choice(found)
        return data[: one.start()] + self.random.choice(EXTREME) + data[one.end() :]

    def truncate(self, data: bytes) -> bytes:
        return data[: self.at(data)]

    def splice(self, data: bytes) -> bytes:
        other = self.random.choice(self.seeds)
        return data[: self.at(data)] + other[self.at(other) :]
