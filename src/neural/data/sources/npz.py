"""Arrays in one `.npz` file, as `numpy.savez` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.data.array_examples import create_array_examples, tabulate_arrays
from neural.data.numpy_files import load_npz
from neural.data.source import DataLocation, DataSchema, DataSource, Examples

if TYPE_CHECKING:
    from neural.data.table_columns import TableSettings
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
        return create_array_examples(load_npz(location), location.name, network)

    @classmethod
    def read_table(
        cls,
        location: Path,
        network: Network,
        settings: TableSettings,
        schema: DataSchema | None = None,
    ) -> Examples:
        """Load all arrays; the columns of `x` are those of a table without names.

        `schema` has the names in the training data if this is other data, such as a test file.
        """
        classes = schema.classes if schema else ()
        examples = create_array_examples(load_npz(location), location.name, network, classes)
        return tabulate_arrays(examples, settings)
