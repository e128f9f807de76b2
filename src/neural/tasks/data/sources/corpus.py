"""One long text: a file of one's own, or a data set by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from neural.tasks.data.downloads import DOWNLOADS, fetch
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.data.windows import next_characters
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network


class Corpus(Source):
    """A .txt file, or a download: every character is predicted from those before it."""

    looks: ClassVar[str] = f"book.txt, or {', '.join(DOWNLOADS)}: one text, for next-character prediction"
    names: ClassVar[tuple[str, ...]] = tuple(DOWNLOADS)

    @classmethod
    def fits(cls, where: Where) -> bool:
        """A known name, or one file that ends in .txt."""
        if isinstance(where, str):
            return where in DOWNLOADS
        return isinstance(where, Path) and where.suffix.lower() == ".txt" and where.is_file()

    @classmethod
    def read(cls, where: str | Path, network: Network) -> Examples:
        """Windows side by side."""
        path = where if isinstance(where, Path) else fetch(where)
        return next_characters(read_text(path), network, path.name if isinstance(where, Path) else where)


def read_text(path: Path) -> str:
    """A text of any encoding that is near UTF-8; what is not stays visible as a replacement character."""
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as problem:
        raise TaskError(f"{path.name} cannot be read: {problem.strerror}") from None
