"""Handwritten digits of scikit-learn: 1,797 images, 8 × 8, 10 classes (Alpaydin & Kaynak, 1998)."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.data.input_checks import reshape_rows
from neural.data.optional_packages import import_optional
from neural.data.source import DataLocation, DataSource, Examples

if TYPE_CHECKING:
    from neural.language.network import Network

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
    """Grey levels (1797, 64) and class numbers (1797,).

    Read directly from scikit-learn's file if possible: importing the library takes two seconds.
    """
    spec = find_spec("sklearn")
    file = (
        Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
        if spec and spec.origin
        else None
    )
    if file is not None and file.is_file():
        with gzip.open(file, "rt", encoding="ascii") as text:
            table = np.loadtxt(text, delimiter=",", dtype=np.int64)
        return table[:, :-1], table[:, -1]
    digits = import_optional(
        "sklearn.datasets", feature="the dataset `digits`", install="scikit-learn"
    ).load_digits()
    return digits.data.astype(np.int64), digits.target
