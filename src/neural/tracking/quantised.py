"""Maps small enough to keep one for every few steps: 8 bits on a square-root scale, deflated.

A weight w is kept as the nearest whole number to 255·√w: small weights, which are the many, get most of the steps, and
no weight is off by more than 0.004. Of causal maps only the triangle that can be seen is kept.

The bytes: "NMAP", a version (1), five 32-bit whole numbers, least significant byte first: heads H, queries Q, keys K,
1 or 0 for causal or not, and the key that the first query stands at; then a zlib stream of one byte per weight, head
by head, row by row. A causal map has of row i only the keys up to that one + i.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neural.tracking.trouble import RunError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

MAGIC, VERSION = b"NMAP", 1
HEADER = struct.Struct("<4sBiiiii")
LEVEL = 3
"""Of zlib's nine; 6 takes twice the time for 3 % less."""
DENSEST = 4096
"""Weights that a byte can stand for: zlib makes at most 1,032 of one, and of a causal map about half is kept."""


class MapError(RunError, ValueError):
    """These bytes are not a map, or not a whole one."""


@contextmanager
def maps_from(run: Path, step: int) -> Iterator[None]:
    """Say of a broken map inside the block whose it is."""
    try:
        yield
    except MapError as broken:
        raise MapError(f"{run / 'rows.sqlite'}, step {step}: {broken}") from None


def pack(weights: Float[np.ndarray, "H Q K"], *, causal: bool = False, first: int | None = None) -> bytes:
    """Keep a map; of a `causal` one the triangle alone.

    `first` is the key that the first query stands at: K − Q unless given (the last query stands at the last key).
    """
    heads, queries, keys = weights.shape
    first = keys - queries if first is None else first
    steps = np.rint(np.sqrt(np.clip(weights, 0, 1)) * 255).astype(np.uint8)
    kept = steps[:, _triangle(queries, keys, first)] if causal else steps
    return HEADER.pack(MAGIC, VERSION, heads, queries, keys, int(causal), first) + zlib.compress(kept.tobytes(), LEVEL)


def unpack(packed: bytes) -> Float[np.ndarray, "H Q K"]:
    """The map, each weight within 0.004 of what it was; what a causal map cannot see is 0."""
    if len(packed) < HEADER.size or not packed.startswith(MAGIC):
        raise MapError("not a map: it does not begin as one")
    _, version, heads, queries, keys, causal, first = HEADER.unpack_from(packed)
    if version != VERSION:
        raise MapError(f"a map of version {version}; this program reads version {VERSION}")
    if min(heads, queries, keys) < 0 or max(heads, 1) * max(queries, 1) * max(keys, 1) > DENSEST * len(packed):
        raise MapError(f"a broken map: {len(packed)} bytes cannot hold {heads} × {queries} × {keys} weights")
    seen = _triangle(queries, keys, first) if causal else np.ones((queries, keys), bool)
    wanted, stream = heads * int(seen.sum()), zlib.decompressobj()
    try:
        kept = np.frombuffer(stream.decompress(memoryview(packed)[HEADER.size :], wanted + 1), np.uint8)
    except zlib.error as problem:
        raise MapError(f"a broken map: {problem}") from None
    if kept.size != wanted or not stream.eof:
        more = "more" if kept.size > wanted else kept.size
        raise MapError(f"a broken map: {more} weights where {wanted} should be, or no end")
    found = np.zeros((heads, queries, keys), np.float32)
    found[:, seen] = np.square(kept.reshape(heads, -1) / np.float32(255))
    return found


def _triangle(queries: int, keys: int, first: int) -> Bool[np.ndarray, "Q K"]:
    return np.tri(queries, keys, first, dtype=bool)
