"""One `.npy` file per array, memory-mapped. The role of an array is `x`, `y`, `mask`, …"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.core.errors import TaskError
from neural.data.array_roles import assign_roles
from neural.data.numpy_files import is_archive, map_npy
from neural.data.source import DataLocation, DataSource, Examples

if TYPE_CHECKING:
    import numpy as np

    from neural.language.network import Network


class Npy(DataSource):
    """A folder with `x.npy` and `y.npy`, or `{x: a.npy, y: b.npy}`; may be larger than memory."""

    description: ClassVar[str] = "a folder with x.npy and y.npy, or {x: a.npy, y: b.npy}"

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A folder with .npy files, or a mapping of roles to paths."""
        if isinstance(location, Mapping):
            return bool(location) and all(isinstance(file, Path) for file in location.values())
        return isinstance(location, Path) and location.is_dir() and any(location.glob("*.npy"))

    @classmethod
    def read(cls, location: Path | Mapping[str, Path], network: Network) -> Examples:
        """Memory-map all files."""
        files = (
            location
            if isinstance(location, Mapping)
            else {file.stem: file for file in sorted(location.glob("*.npy"))}
        )
        data_name = (
            ", ".join(file.name for file in files.values())
            if isinstance(location, Mapping)
            else location.name
        )
        train, valid, notes = assign_roles(
            {role: _map_file(file) for role, file in files.items()}, data_name, network
        )
        return Examples(data_name=data_name, train=train, valid=valid, notes=tuple(notes))


def _map_file(file: Path) -> np.ndarray:
    """Memory-map one file; TaskError if it is an .npz archive."""
    if is_archive(file):
        raise TaskError(
            f'{file.name} is not an .npy file; name an .npz alone: `data: "{file.name}"`'
        )
    return map_npy(file)
