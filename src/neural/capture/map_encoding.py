"""Attention maps in 8 bits on a square-root scale, compressed with zlib.

A weight w is stored as round(255·√w): most levels go to small weights, which are the most frequent,
and no weight is off by more than 0.004. Causal maps store only the visible triangle.

Format: "NMAP", a version byte (1), and five 32-bit little-endian integers: heads H, queries Q, keys
K, 1 if causal else 0, and the key index of the first query (the offset); then a zlib stream of one
byte per weight, head by head, row by row. Row i of a causal map has only the keys up to offset + i.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neural.runs.errors import RunError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

MAP_MAGIC, MAP_VERSION = b"NMAP", 1
MAP_HEADER = struct.Struct("<4sBiiiii")
ZLIB_LEVEL = 3
"""Level 6 takes twice the time for 3 % less."""
MAX_WEIGHTS_PER_BYTE = 4096
"""Limit of weights per encoded byte, against forged sizes: zlib expands a byte to at most 1,032,
and a causal map stores about half of its weights."""


class MapError(RunError, ValueError):
    """These bytes are not an encoded map, or are damaged."""


@contextmanager
def add_map_location(run: Path, step: int) -> Iterator[None]:
    """Prefix a MapError inside the block with the file of the run folder `run` and the step."""
    try:
        yield
    except MapError as error:
        raise MapError(f"{run / 'rows.sqlite'}, step {step}: {error}") from None


def encode_map(
    weights: Float[np.ndarray, "H Q K"], *, causal: bool = False, query_offset: int | None = None
) -> bytes:
    """Encode a map; of a `causal` one, only the triangle.

    `query_offset`: key index of the first query; K − Q if None (the last query is at the last key).
    """
    heads, queries, keys = weights.shape
    offset = keys - queries if query_offset is None else query_offset
    levels = np.rint(np.sqrt(np.clip(weights, 0, 1)) * 255).astype(np.uint8)
    stored = levels[:, _causal_triangle(queries, keys, offset)] if causal else levels
    header = MAP_HEADER.pack(MAP_MAGIC, MAP_VERSION, heads, queries, keys, int(causal), offset)
    return header + zlib.compress(stored.tobytes(), ZLIB_LEVEL)


def decode_map(encoded: bytes) -> Float[np.ndarray, "H Q K"]:
    """Decode a map; weights are within 0.004 of the original, hidden pairs of causal maps are 0."""
    if len(encoded) < MAP_HEADER.size or not encoded.startswith(MAP_MAGIC):
        raise MapError("not a map: its header is missing")
    _, version, heads, queries, keys, causal, offset = MAP_HEADER.unpack_from(encoded)
    if version != MAP_VERSION:
        raise MapError(f"a map of version {version}; this program reads version {MAP_VERSION}")
    claimed_weights = max(heads, 1) * max(queries, 1) * max(keys, 1)
    if min(heads, queries, keys) < 0 or claimed_weights > MAX_WEIGHTS_PER_BYTE * len(encoded):
        raise MapError(
            f"a damaged map: {len(encoded)} bytes cannot hold {heads} × {queries} × {keys} weights"
        )
    visible = _causal_triangle(queries, keys, offset) if causal else np.ones((queries, keys), bool)
    expected_count, stream = heads * int(visible.sum()), zlib.decompressobj()
    try:
        # at most one byte too many: a forged stream must not fill the memory
        data = stream.decompress(memoryview(encoded)[MAP_HEADER.size :], expected_count + 1)
    except zlib.error as error:
        raise MapError(f"a damaged map: {error}") from None
    levels = np.frombuffer(data, np.uint8)
    if levels.size != expected_count or not stream.eof:
        count = "more" if levels.size > expected_count else levels.size
        raise MapError(f"a damaged map: {count} weights instead of {expected_count}, or no end")
    weights = np.zeros((heads, queries, keys), np.float32)
    weights[:, visible] = np.square(levels.reshape(heads, -1) / np.float32(255))
    return weights


def _causal_triangle(queries: int, keys: int, offset: int) -> Bool[np.ndarray, "Q K"]:
    """True for the keys that a causal map has: those up to offset + query index."""
    return np.tri(queries, keys, offset, dtype=bool)
