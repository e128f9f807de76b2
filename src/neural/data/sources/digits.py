"""Handwritten digits: 1,797 images, 8 × 8, 10 classes (Alpaydin and Kaynak, 1998).

The file digits.bin is the test set of "Optical Recognition of Handwritten Digits" of the UCI
repository (CC BY 4.0, digits.LICENSE.txt), equal to scikit-learn's `load_digits`.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.data.input_checks import reshape_rows
from neural.data.source import DataLocation, DataSource, Examples

if TYPE_CHECKING:
    from neural.language.network import Network

DIGITS_FILE = Path(__file__).with_suffix(".bin")
"""Bytes, compressed by zlib: the labels, then every pixel of all images.

Images are sorted by class there, so that neighbours are similar: 36 kB instead of 45.
"""
PIXELS, EXAMPLES = 64, 1797
MAX_LEVEL = 16
"""Largest grey level of a pixel; the smallest is 0."""


class Digits(DataSource):
    """Digits in any shape of 64 numbers from 0 to 1, such as (8, 8, 1), (8, 8) or (64, 1).

    Before an `Embedding`, the 17 grey levels are token ids.
    """

    description: ClassVar[str] = '"digits": 1,797 handwritten digits, 8 × 8'
    dataset_names: ClassVar[tuple[str, ...]] = ("digits",)

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """The name `digits`."""
        return location == "digits"

    @classmethod
    def read(cls, location: str, network: Network) -> Examples:
        """Pixels row by row, from the top left."""
        grey_levels, labels = _load_digits()
        x = reshape_rows(
            grey_levels
            if network.takes_token_ids
            else (grey_levels / MAX_LEVEL).astype(np.float32),
            network,
            location,
        )
        tokens = tuple(map(str, range(MAX_LEVEL + 1))) if network.takes_token_ids else ()
        classes = tuple(map(str, range(10)))
        return Examples(
            data_name=location, train={"x": x, "y": labels}, classes=classes, tokens=tokens
        )


def _load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Grey levels (1797, 64) and class numbers (1797,), int64."""
    values = np.frombuffer(zlib.decompress(DIGITS_FILE.read_bytes()), np.uint8)
    table = values.reshape(1 + PIXELS, EXAMPLES).astype(np.int64)
    labels, sorted_pixels = table[0], table[1:]
    grey_levels = np.empty((EXAMPLES, PIXELS), np.int64)
    grey_levels[np.argsort(labels, kind="stable")] = sorted_pixels.T
    return grey_levels, labels
