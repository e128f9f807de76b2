"""One file per array, as `numpy.save` writes them: read from disk as they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.tasks.data.array_files import is_archive, mapped
from neural.tasks.data.named import arrange
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    import numpy as np

    from neural.language.network import Network


class Npy(Source):
    """A folder with `x.npy` and `y.npy`, or `{x: a.npy, y: b.npy}`; may be larger than the memory."""

    looks: ClassVar[str] = "a folder with x.npy and y.npy, or {x: a.npy, y: b.npy}"

    @classmethod
    def fits(cls, where: Where) -> bool:
        """Files that end in .npy, in a folder or named one by one."""
        if isinstance(where, Mapping):
            return bool(where) and all(isinstance(file, Path) for file in where.values())
        return isinstance(where, Path) and where.is_dir() and any(where.glob("*.npy"))

    @classmethod
    def read(cls, where: Path | Mapping[str, Path], network: Network) -> Examples:
        """Maps the files into memory."""
        files = where if isinstance(where, Mapping) else {file.stem: file for file in sorted(where.glob("*.npy"))}
        name = ", ".join(file.name for file in files.values()) if isinstance(where, Mapping) else where.name
        train, valid, remarks = arrange({role: _mapped(file) for role, file in files.items()}, name, network)
        return Examples(where=name, train=train, valid=valid, remarks=tuple(remarks))


def _mapped(file: Path) -> np.ndarray:
    if is_archive(file):
        raise TaskError(f"{file.name} is no .npy file; an .npz is given alone: `data: \"{file.name}\"`")
    return mapped(file)
