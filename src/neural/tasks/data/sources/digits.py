"""Handwritten digits that come with scikit-learn: 1,797 images, 8 × 8, ten classes (Alpaydin and Kaynak, 1998)."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.tasks.data.packages import needed
from neural.tasks.data.shaping import shaped
from neural.tasks.data.source import Examples, Source, Where

if TYPE_CHECKING:
    from neural.language.network import Network

BRIGHTEST = 16


class Digits(Source):
    """In any shape of 64 numbers from 0 to 1, such as (8, 8, 1), (8, 8) or (64, 1); as 17 ids before an `Embedding`."""

    looks: ClassVar[str] = '"digits": 1,797 handwritten digits, 8 × 8'
    names: ClassVar[tuple[str, ...]] = ("digits",)

    @classmethod
    def fits(cls, where: Where) -> bool:
        """By its name."""
        return where == "digits"

    @classmethod
    def read(cls, where: str, network: Network) -> Examples:
        """Row by row, from the top left."""
        levels, target = _digits()
        x = shaped(levels if network.ids else (levels / BRIGHTEST).astype(np.float32), network, where)
        tokens = tuple(map(str, range(BRIGHTEST + 1))) if network.ids else ()
        classes = tuple(map(str, range(10)))
        return Examples(where=where, train={"x": x, "y": target}, classes=classes, tokens=tokens)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Grey levels and classes. From scikit-learn's file where it is found: importing the library takes two seconds."""
    library = find_spec("sklearn")
    file = Path(library.origin).parent / "datasets" / "data" / "digits.csv.gz" if library and library.origin else None
    if file is not None and file.is_file():
        with gzip.open(file, "rt", encoding="ascii") as text:
            table = np.loadtxt(text, delimiter=",", dtype=np.int64)
        return table[:, :-1], table[:, -1]
    found = needed("sklearn.datasets", for_="the data set `digits`", install="scikit-learn").load_digits()
    return found.data.astype(np.int64), found.target
