"""Tables in files: one row per example, columns of numbers or categories, one target column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.data.source import DataLocation, DataSchema, DataSource, Examples
from neural.data.table_cells import SUFFIXES, read_table_file
from neural.data.table_columns import TableSettings
from neural.data.table_examples import create_examples

if TYPE_CHECKING:
    from neural.language.network import Network


class Table(DataSource):
    """CSV or TSV with or without a header, JSON lines, or Parquet; words as targets are classes."""

    description: ClassVar[str] = (
        "table.csv: numbers, and the target in the last column or in one named label, target or y"
    )

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A file with the suffix of a table."""
        return isinstance(location, Path) and location.suffix.lower() in SUFFIXES

    @classmethod
    def read(cls, location: Path, network: Network) -> Examples:
        """Read all rows; errors name line and column."""
        return cls.read_table(location, network, TableSettings())

    @classmethod
    def read_table(
        cls,
        location: Path,
        network: Network,
        settings: TableSettings,
        schema: DataSchema | None = None,
    ) -> Examples:
        """Read all rows, with the columns that the settings choose."""
        columns = schema.columns if schema else settings.named_columns()
        cells = read_table_file(location, columns)
        return create_examples(cells, network, settings, schema)
