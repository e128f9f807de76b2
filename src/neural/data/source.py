"""Base class of data sources, and `Examples`, the arrays that they read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np

    from neural.language.network import Network

    Arrays = Mapping[str, np.ndarray]
    """Arrays by role, such as `x`, `y`, `mask` (see array_roles.py); the first axis is examples."""

DataLocation = str | Path | Mapping[str, Any] | tuple[Any, ...]
"""A dataset name, an existing path, files by role, or arrays in memory."""


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
