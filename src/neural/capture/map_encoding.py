"""Attention maps in 8 bits on a square-root scale, compressed with zlib.

A weight w is stored as round(255·√w): most levels go to small weights, which are the most frequent,
and no weight is off by more than 0.004. Pairs that the mask hides are not stored: the mask is.

Format: "NMAP", a version byte (1), and five 32-bit little-endian integers: heads H, queries Q, keys
K, 1 if causal else 0, and the key index of the first query (the offset); then a zlib stream of one
byte per weight, head by head, row by row. Row i of a causal map has only the keys up to offset + i.
A map with any other mask (a window, padding, documents) has 2 added to its version; its stream begins
with Q·K bits, the first in the lowest bit, 1 where a head sees the key, and has only those weights.

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
    from jaxtyping import Float

MAP_MAGIC, MAP_VERSION, SIGNED_MAP_VERSION, MASKED_MAP_VERSIONS = b"NMAP", 1, 2, (3, 4)
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
    """Encode a map; NaN in every head is a masked pair, and so is the future if it is `causal`.

    `query_offset`: key index of the first query; K − Q if None (the last query is at the last key).
    `signed`: whether it is a signed map; if None, whether a weight is negative beyond rounding.
    """
    heads, queries, keys = weights.shape
    offset = keys - queries if query_offset is None else query_offset
    visible = ~np.isnan(weights).all(axis=0)
    triangle = np.tri(queries, keys, offset, dtype=bool)
    if causal:
        visible &= triangle
    weights = np.nan_to_num(weights)
    signed = bool((weights < -ROUNDED_TO_ZERO).any()) if signed is None else signed
    version, scale_field = MAP_VERSION, b""
    if signed:
        scale = max(1.0, float(np.abs(weights).max(initial=0.0)))
        version, scale_field = SIGNED_MAP_VERSION, SCALE_FIELD.pack(scale)
        roots = np.sign(weights) * np.sqrt(np.abs(weights) / scale)
        levels = np.rint(roots * 127).astype(np.int8).view(np.uint8)
    else:
        levels = np.rint(np.sqrt(np.clip(weights, 0, 1)) * 255).astype(np.uint8)
    is_triangle, mask_bits = not visible.all() and np.array_equal(visible, triangle), b""
    if not visible.all() and not is_triangle:
        version, mask_bits = version + 2, np.packbits(visible, bitorder="little").tobytes()
    header = MAP_HEADER.pack(MAP_MAGIC, version, heads, queries, keys, int(is_triangle), offset)
    stored = mask_bits + levels[:, visible].tobytes()
    return header + scale_field + zlib.compress(stored, ZLIB_LEVEL)


def is_signed_map(encoded: bytes) -> bool:
    """Whether an encoded map may have negative weights."""
    return encoded[4:5] in (bytes([SIGNED_MAP_VERSION]), bytes([MASKED_MAP_VERSIONS[1]]))


def decode_map(encoded: bytes, *, hidden: float = 0.0) -> Float[np.ndarray, "H Q K"]:
    """Decode a map; weights are within 0.004 of the original, those of masked pairs are `hidden`.

    Those of a signed map are within 0.008 times the largest. Runs of older versions have recorded
    causal masks only.
    """
    if len(encoded) < MAP_HEADER.size or not encoded.startswith(MAP_MAGIC):
        raise MapError("not a map: its header is missing")
    _, version, heads, queries, keys, causal, offset = MAP_HEADER.unpack_from(encoded)
    if not MAP_VERSION <= version <= MASKED_MAP_VERSIONS[1]:
        raise MapError(
            f"a map of version {version}; this program reads versions {MAP_VERSION} to "
            f"{MASKED_MAP_VERSIONS[1]}"
        )
    signed, stream_start, scale = is_signed_map(encoded), MAP_HEADER.size, 1.0
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
    visible = np.tri(queries, keys, offset if causal else keys, dtype=bool)
    mask_size = -(-queries * keys // 8) if version in MASKED_MAP_VERSIONS else 0
    stream = zlib.decompressobj()
    try:
        # at most one byte too many: a forged stream must not fill the memory
        data = stream.decompress(
            memoryview(encoded)[stream_start:], mask_size + claimed_weights + 1
        )
    except zlib.error as error:
        raise MapError(f"a damaged map: {error}") from None
    if mask_size:
        bits = np.frombuffer(data[:mask_size].ljust(mask_size, b"\0"), np.uint8)
        visible = (
            np.unpackbits(bits, bitorder="little")[: queries * keys].reshape(queries, keys) > 0
        )
    expected_count = heads * int(visible.sum())
    levels = np.frombuffer(data[mask_size:], np.int8 if signed else np.uint8)
    if levels.size != expected_count or not stream.eof:
        count = "more" if levels.size > expected_count else levels.size
        raise MapError(f"a damaged map: {count} weights instead of {expected_count}, or no end")
    roots = levels.reshape(heads, -1) / np.float32(127 if signed else 255)
    weights = np.full((heads, queries, keys), hidden, np.float32)
    squares = np.square(roots)
    weights[:, visible] = np.sign(roots) * squares * np.float32(scale) if signed else squares
    return weights


def decode_real_rows(encoded: bytes) -> Float[np.ndarray, "H Q K"]:
    """Decode a map as `decode_map` does, with weights of 0 in the rows of padding.

    A model computes these rows as well, but they say nothing about its heads. In a square map, a
    position that no query sees is padding.
    """
    weights = decode_map(encoded, hidden=math.nan)
    if weights.shape[1] == weights.shape[2]:
        weights[:, np.isnan(weights).all(axis=(0, 1))] = 0
    return np.nan_to_num(weights)


def to_shares(weights: Float[np.ndarray, "H Q K"]) -> Float[np.ndarray, "H Q K"]:
    """|w| / Σ|w| of every row if weights are negative, as in dense_weights.py; else unchanged."""
    if not (weights < 0).any():
        return weights
    total = np.abs(weights).sum(axis=-1, keepdims=True)
    return np.abs(weights) / np.where(total > 0, total, 1)
