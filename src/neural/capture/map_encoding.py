"""Attention maps in 8 bits on a square-root scale, compressed with zlib.

A weight w is stored as round(255·√w): most levels go to small weights, which are the most frequent,
and no weight is off by more than 0.004. Causal maps store only the visible triangle.

Format: "NMAP", a version byte (1), and five 32-bit little-endian integers: heads H, queries Q, keys
K, 1 if causal else 0, and the key index of the first query (the offset); then a zlib stream of one
byte per weight, head by head, row by row. Row i of a causal map has only the keys up to offset + i.

A signed map has negative weights (`Mechanism.signed`). Its version is 2, and a 32-bit float follows
the integers: the scale s, the largest |w| or 1 if that is larger. A weight is stored as a signed
byte, round(127·√(|w| / s)) with the sign of w: no weight is clipped or off by more than 0.008·s.
"""

from __future__ import annotations

import math
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

MAP_MAGIC, MAP_VERSION, SIGNED_MAP_VERSION = b"NMAP", 1, 2
MAP_HEADER = struct.Struct("<4sBiiiii")
SCALE_FIELD = struct.Struct("<f")
"""Follows the header of a signed map."""
ROUNDED_TO_ZERO = (0.5 / 255) ** 2
"""Weights below this are stored as 0 in a map that is not signed."""
ZLIB_LEVEL = 3
"""Compression level. The default, 6, takes twice the time for files that are 3 % smaller."""
MAX_WEIGHTS_PER_BYTE = 4096
"""Limit of weights per encoded byte, against forged sizes: zlib expands a byte to at most 1,032,
and a causal map stores about half of its weights."""


class MapError(RunError, ValueError):
    """These bytes are not an encoded map, or are damaged."""


@contextmanager
def add_map_location(run: Path, step: int) -> Iterator[None]:
    """Add the location to the message of a MapError inside the block: file of the run, and step."""
    try:
        yield
    except MapError as error:
        raise MapError(f"{run / 'rows.sqlite'}, step {step}: {error}") from None


def encode_map(
    weights: Float[np.ndarray, "H Q K"],
    *,
    causal: bool = False,
    query_offset: int | None = None,
    signed: bool | None = None,
) -> bytes:
    """Encode a map; if it is `causal`, without the pairs that a causal mask hides.

    `query_offset`: key index of the first query; K − Q if None (the last query is at the last key).
    `signed`: whether it is a signed map; if None, whether a weight is negative beyond rounding.
    """
    heads, queries, keys = weights.shape
    offset = keys - queries if query_offset is None else query_offset
    signed = bool((weights < -ROUNDED_TO_ZERO).any()) if signed is None else signed
    version, scale_field = MAP_VERSION, b""
    if signed:
        scale = max(1.0, float(np.abs(weights).max(initial=0.0)))
        version, scale_field = SIGNED_MAP_VERSION, SCALE_FIELD.pack(scale)
        roots = np.sign(weights) * np.sqrt(np.abs(weights) / scale)
        levels = np.rint(roots * 127).astype(np.int8).view(np.uint8)
    else:
        levels = np.rint(np.sqrt(np.clip(weights, 0, 1)) * 255).astype(np.uint8)
    stored = levels[:, _causal_triangle(queries, keys, offset)] if causal else levels
    header = MAP_HEADER.pack(MAP_MAGIC, version, heads, queries, keys, int(causal), offset)
    return header + scale_field + zlib.compress(stored.tobytes(), ZLIB_LEVEL)


def is_signed_map(encoded: bytes) -> bool:
    """Whether an encoded map may have negative weights."""
    return encoded[len(MAP_MAGIC) : len(MAP_MAGIC) + 1] == bytes([SIGNED_MAP_VERSION])


def decode_map(encoded: bytes) -> Float[np.ndarray, "H Q K"]:
    """Decode a map; weights are within 0.004 of the original, hidden pairs of causal maps are 0.

    Those of a signed map are within 0.008 times the largest.
    """
    if len(encoded) < MAP_HEADER.size or not encoded.startswith(MAP_MAGIC):
        raise MapError("not a map: its header is missing")
    _, version, heads, queries, keys, causal, offset = MAP_HEADER.unpack_from(encoded)
    if version not in (MAP_VERSION, SIGNED_MAP_VERSION):
        raise MapError(
            f"a map of version {version}; this program reads versions {MAP_VERSION} and "
            f"{SIGNED_MAP_VERSION}"
        )
    signed, stream_start, scale = version == SIGNED_MAP_VERSION, MAP_HEADER.size, 1.0
    if signed:
        stream_start += SCALE_FIELD.size
        if len(encoded) < stream_start:
            raise MapError("a damaged map: its scale is missing")
        (scale,) = SCALE_FIELD.unpack_from(encoded, MAP_HEADER.size)
        if not 1 <= scale < math.inf:
            raise MapError(f"a damaged map: its scale is {scale:g}")
    claimed_weights = max(heads, 1) * max(queries, 1) * max(keys, 1)
    if min(heads, queries, keys) < 0 or claimed_weights > MAX_WEIGHTS_PER_BYTE * len(encoded):
        raise MapError(
            f"a damaged map: {len(encoded)} bytes cannot hold {heads} × {queries} × {keys} weights"
        )
    visible = _causal_triangle(queries, keys, offset) if causal else np.ones((queries, keys), bool)
    expected_count, stream = heads * int(visible.sum()), zlib.decompressobj()
    try:
        # at most one byte too many: a forged stream must not fill the memory
        data = stream.decompress(memoryview(encoded)[stream_start:], expected_count + 1)
    except zlib.error as error:
        raise MapError(f"a damaged map: {error}") from None
    levels = np.frombuffer(data, np.int8 if signed else np.uint8)
    if levels.size != expected_count or not stream.eof:
        count = "more" if levels.size > expected_count else levels.size
        raise MapError(f"a damaged map: {count} weights instead of {expected_count}, or no end")
    roots = levels.reshape(heads, -1) / np.float32(127 if signed else 255)
    weights = np.zeros((heads, queries, keys), np.float32)
    squares = np.square(roots)
    weights[:, visible] = np.sign(roots) * squares * np.float32(scale) if signed else squares
    return weights


def to_shares(weights: Float[np.ndarray, "H Q K"]) -> Float[np.ndarray, "H Q K"]:
    """|w| / Σ|w| of every row if weights are negative, as in dense_weights.py; else unchanged."""
    if not (weights < 0).any():
        return weights
    total = np.abs(weights).sum(axis=-1, keepdims=True)
    return np.abs(weights) / np.where(total > 0, total, 1)


def _causal_triangle(queries: int, keys: int, offset: int) -> Bool[np.ndarray, "Q K"]:
    """True for the keys that a causal map has: those up to offset + query index."""
    return np.tri(queries, keys, offset, dtype=bool)
