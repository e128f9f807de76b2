"""PNG files of RGB pixels."""

from __future__ import annotations

import struct
import zlib

import numpy as np

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def encode_png(pixels: np.ndarray) -> bytes:
    """A PNG file of pixels (height, width, 3), uint8."""
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits per channel, RGB
    image = zlib.compress(_filter_rows(pixels).tobytes(), 9)
    chunks = ((b"IHDR", header), (b"IDAT", image), (b"IEND", b""))
    return PNG_MAGIC + b"".join(_encode_chunk(kind, data) for kind, data in chunks)


def _filter_rows(pixels: np.ndarray) -> np.ndarray:
    """Rows of bytes, each after the number of its filter: the one with the smallest differences.

    The filters are none (0), difference to the left pixel (1) and to the pixel above (2). Small
    differences compress better.
    """
    height, width, channels = pixels.shape
    left, above = np.zeros_like(pixels), np.zeros_like(pixels)
    left[:, 1:], above[1:] = pixels[:, :-1], pixels[:-1]
    candidates = np.stack([pixels, pixels - left, pixels - above])  # differences modulo 256
    sizes = np.abs(candidates.view(np.int8).astype(np.int16)).sum(axis=(2, 3))
    filters = sizes.argmin(axis=0)
    rows = candidates[filters, np.arange(height)].reshape(height, width * channels)
    return np.concatenate([filters[:, None].astype(np.uint8), rows], axis=1)


def _encode_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
