"""Arrays in one `.npz` file, as `numpy.savez` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.data.array_roles import assign_roles
from neural.data.numpy_files import load_npz
from neural.data.source import DataLocation, DataSource, Examples

if TYPE_CHECKING:
    from neural.language.network import Network


class Npz(DataSource):
    """Named arrays: `x`, `y`, perhaps `mask`, `x_valid`, `y_valid`; or `source` and `target`."""

    description: ClassVar[str] = "data.npz with the arrays x and y (or source and target)"

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A file with the suffix .npz."""
        return isinstance(location, Path) and location.suffix.lower() == ".npz"

    @classmethod
    def read(cls, location: Path, network: Network) -> Examples:
        """Load all arrays."""
        train, valid, notes = assign_roles(load_npz(location), location.name, network)
        return Examples(data_name=location.name, train=train, valid=valid, notes=tuple(notes))
