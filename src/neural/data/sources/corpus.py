"""One long text: a .txt file, or a downloaded dataset, for next-character prediction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.core.errors import TaskError
from neural.data.downloads import DOWNLOADS, fetch
from neural.data.source import DataLocation, DataSource, Examples
from neural.data.text_encoding import next_character_examples

if TYPE_CHECKING:
    from neural.language.network import Network


class Corpus(DataSource):
    """A .txt file or a download, cut into windows for next-character prediction."""

    description: ClassVar[str] = (
        f"book.txt, or {', '.join(DOWNLOADS)}: one text, for next-character prediction"
    )
    dataset_names: ClassVar[tuple[str, ...]] = tuple(DOWNLOADS)

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """The name of a download, or a .txt file."""
        if isinstance(location, str):
            return location in DOWNLOADS
        return (
            isinstance(location, Path) and location.suffix.lower() == ".txt" and location.is_file()
        )

    @classmethod
    def read(cls, location: str | Path, network: Network) -> Examples:
        """Adjacent windows of the text as token ids, one per character."""
        path = location if isinstance(location, Path) else fetch(location)  # downloads if needed
        return next_character_examples(
            read_text(path), network, path.name if isinstance(location, Path) else location
        )


def read_text(path: Path) -> str:
    """Text of a UTF-8 file; invalid bytes become replacement characters."""
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise TaskError(f"{path.name} cannot be read: {error.strerror}") from None
