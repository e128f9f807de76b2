"""Arrays in one file, as `numpy.savez` writes them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.tasks.data.named import arrange
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network


class Npz(Source):
    """Named arrays: `x`, `y`, perhaps `mask`, `x_valid`, `y_valid`; or `source` and `target`."""

    looks: ClassVar[str] = "data.npz with the arrays x and y (or source and target)"

    @classmethod
    def fits(cls, where: Where) -> bool:
        """By its suffix."""
        return isinstance(where, Path) and where.suffix.lower() == ".npz"

    @classmethod
    def read(cls, where: Path, network: Network) -> Examples:
        """All arrays."""
        train, valid, remarks = arrange(loaded(where), where.name, network)
        return Examples(where=where.name, train=train, valid=valid, remarks=tuple(remarks))


def loaded(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file by name, without unpickling anything; TaskError where it cannot be read."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as problem:
        raise TaskError(f"{path.name} cannot be read: {reason(problem)}") from None


def reason(problem: Exception) -> str:
    """Why numpy could not read a file, in words for its owner."""
    if "allow_pickle" in str(problem) or "pickled" in str(problem):
        return "it holds Python objects; save plain numbers (an array whose dtype is not object)"
    return str(problem) or type(problem).__name__
