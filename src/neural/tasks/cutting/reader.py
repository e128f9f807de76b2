"""What every reader promises: files of one kind → documents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.elements import Unit

Told = Literal["auto", "blank_lines", "headings"]


@dataclass(frozen=True)
class Reading:
    """How files are to be read."""

    unit: Unit = "sentences"
    """What the elements of running text are."""
    told_by: Told = "auto"
    """What tells parts apart in plain text: blank lines, headings, or headings where a text has two and more."""
    judged: bool = True
    """Whether the parts must be known; False where they are asked for, and what is known does not matter."""
    labels: dict[str, int] = field(default_factory=dict)
    """Labels that are words and the numbers they were given, as they came; the same for all that is read with this."""


class Reader(ABC):
    """A kind of file that holds documents with known parts."""

    looks: ClassVar[str]
    """What the user writes, in words."""
    suffixes: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def read(cls, path: Path, reading: Reading) -> tuple[list[Document], list[str]]:
        """The documents of one file, and what is worth knowing about them; TaskError where it is broken."""
