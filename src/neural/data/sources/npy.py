"""One `.npy` file per array, memory-mapped. Arrays have names such as `x`, `y`, `x_valid`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.core.errors import TaskError
from neural.data.array_examples import create_array_examples, tabulate_arrays
from neural.data.numpy_files import is_archive, map_npy
from neural.data.source import DataLocation, DataSchema, DataSource, Examples

if TYPE_CHECKING:
    import numpy as np

    from neural.data.table_columns import TableSettings
    from neural.language.network import Network


class Npy(DataSource):
    """A folder with `x.npy` and `y.npy`, or `{x: a.npy, y: b.npy}`; may be larger than memory."""

    description: ClassVar[str] = "a folder with x.npy and y.npy, or {x: a.npy, y: b.npy}"

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A folder with .npy files, or a mapping of array names to paths."""
        if isinstance(location, Mapping):
            return bool(location) and all(isinstance(file, Path) for file in location.values())
        return isinstance(location, Path) and location.is_dir() and any(location.glob("*.npy"))

    @classmethod
    def read(cls, location: Path | Mapping[str, Path], network: Network) -> Examples:
        """Memory-map all files."""
        arrays, data_name = _map_files(location)
        return create_array_examples(arrays, data_name, network)

    @classmethod
    def read_table(
        cls,
        location: Path | Mapping[str, Path],
        network: Network,
        settings: TableSettings,
        schema: DataSchema | None = None,
    ) -> Examples:
        """Memory-map all files; the columns of `x` are those of a table without names.

        `schema` has the names in the training data if this is other data, such as a test file.
        """
        arrays, data_name = _map_files(location)
        classes = schema.classes if schema else ()
        examples = create_array_examples(arrays, data_name, network, classes)
        return tabulate_arrays(examples, settings)


def _map_files(location: Path | Mapping[str, Path]) -> tuple[dict[str, np.ndarray], str]:
    """The arrays by name, and the name of the data in messages."""
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
    return {name: _map_file(file) for name, file in files.items()}, data_name


def _map_file(file: Path) -> np.ndarray:
    """Memory-map one file; TaskError if it is an .npz archive."""
    if is_archive(file):
        raise TaskError(
            f"{file.name} is an .npz archive, which holds several arrays: "
            f'write `data: "{file.name}"` instead of a mapping'
        )
    return map_npy(file)
