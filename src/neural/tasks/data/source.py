"""What every kind of data promises: to know its own, and to read it as named arrays."""

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
    """By name (see named.py), the examples along the first axis of each."""

Where = str | Path | Mapping[str, Any] | tuple[Any, ...]
"""A known name, something that exists on disk, named files, or arrays in memory."""


@dataclass(frozen=True, kw_only=True)
class Examples:
    """What was read."""

    where: str
    """What messages call it: the file's name, or the data set's."""
    train: Arrays
    valid: Arrays | None = None
    """Held out by whoever made the data; else a part of `train` is."""
    scale: float = 1.0
    """What the inputs are multiplied with as they are used: pictures stay bytes until then."""
    ordered: bool = False
    """Whether neighbours belong together, as in a text: then the end is held out, not a random part."""
    classes: tuple[str, ...] = ()
    """What the class numbers stand for, where they have names."""
    columns: tuple[str, ...] = ()
    """What the input columns are called, in the network's order, where a table has a header."""
    target: str | None = None
    """What the column with the answers is called there."""
    tokens: tuple[str, ...] = ()
    """What the ids stand for, where they have names."""
    remarks: tuple[str, ...] = ()
    """What is worth knowing, a sentence each."""


class Source(ABC):
    """A kind of data."""

    looks: ClassVar[str]
    """How a user recognises it, for the list of what can be read."""
    names: ClassVar[tuple[str, ...]] = ()
    """Data sets of this kind that are known by name."""

    @classmethod
    @abstractmethod
    def fits(cls, where: Where) -> bool:
        """Whether this is of the kind. Looks at names and suffixes, reads nothing."""

    @classmethod
    @abstractmethod
    def read(cls, where: Any, network: Network) -> Examples:
        """Read it for a network; TaskError where that cannot be."""
