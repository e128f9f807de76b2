"""Base class of data sources, and `Examples`, the arrays that they read.

A data source reads one kind of data, such as CSV tables, into arrays for a network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from neural.core.errors import TaskError

if TYPE_CHECKING:
    import numpy as np

    from neural.data.table_cells import TableCells
    from neural.data.table_columns import TableSettings
    from neural.language.network import Network

    Arrays = Mapping[str, np.ndarray]
    """Arrays by name, such as `x`, `y`, `mask` (array_names.py); the first axis is the example."""

DataLocation = str | Path | Mapping[str, Any] | tuple[Any, ...]
"""A dataset name, an existing path, paths by array name, or arrays in memory."""


class DataSchema(NamedTuple):
    """Names in the training data, which other data for the same network must have too."""

    columns: tuple[str, ...] = ()
    """Feature columns; empty without a header."""
    target: str | None = None
    """Target column; None without a header."""
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class UnfittedTable:
    """Feature columns whose conversion to numbers is fitted once the training rows are known."""

    cells: TableCells
    features: tuple[int, ...]
    """Indices of the feature columns."""
    settings: TableSettings
    valid_cells: TableCells | None = None
    """Validation rows with the same columns; None if part of `cells` is held out."""


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Arrays read by a source, with the names of classes, columns and tokens."""

    data_name: str
    """Name in messages: the file's or the dataset's."""
    train: Arrays
    valid: Arrays | None = None
    """Validation arrays of the data itself; if None, part of `train` is held out."""
    scale: float = 1.0
    """Factor by which inputs are multiplied per batch; images stay uint8 until then."""
    ordered: bool = False
    """Whether examples are a sequence, as in a text: the end is held out, not a random part."""
    classes: tuple[str, ...] = ()
    """Class names by index; empty if unnamed."""
    columns: tuple[str, ...] = ()
    """Names of the input columns in the network's order; empty without a header."""
    target: str | None = None
    """Name of the target column; None without a header."""
    tokens: tuple[str, ...] = ()
    """Text of each token id, for display; empty if unnamed."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""
    table: UnfittedTable | None = None
    """Feature columns from which the dataset makes `x`, which is then not in `train`."""
    groups: np.ndarray | None = None
    """Group of each training example: examples of one group are never split."""

    @property
    def schema(self) -> DataSchema:
        """Names that other data for the same network must have."""
        return DataSchema(self.columns, self.target, self.classes)


class DataSource(ABC):
    """Base class of sources: one kind of data, recognised by its location."""

    description: ClassVar[str]
    """One line for the list of supported kinds of data."""
    dataset_names: ClassVar[tuple[str, ...]] = ()
    """Names of the datasets of this kind."""

    @classmethod
    @abstractmethod
    def matches(cls, location: DataLocation) -> bool:
        """Whether the location is of this kind, judged by names and suffixes without reading it."""

    @classmethod
    @abstractmethod
    def read(cls, location: Any, network: Network) -> Examples:
        """Read the data in the form that the network takes. Raises TaskError on failure."""

    @classmethod
    def read_table(
        cls,
        location: Any,
        network: Network,
        settings: TableSettings,
        schema: DataSchema | None = None,
    ) -> Examples:
        """Read data with the settings of `table`; TaskError for data that has no columns.

        `schema` has the names in the training data if this is other data, such as a test file.
        """
        if settings != type(settings)():
            raise TaskError(
                "the settings of `table` are for tables and two-dimensional arrays, "
                f"not for this kind of data: {cls.description}"
            )
        examples = cls.read(location, network)
        if schema is not None and examples.classes != schema.classes:
            raise TaskError(
                f"{examples.data_name}: the classes are {', '.join(examples.classes) or 'unnamed'}, "
                f"those of the training data are {', '.join(schema.classes) or 'unnamed'}"
            )
        return examples
