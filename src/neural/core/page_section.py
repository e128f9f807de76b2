"""A section of the HTML page of a run: a text and a table, as plain data.

A task (what a run learns, see neural/tasks) adds such sections in `Task.page_sections`. The
terminal prints the same sections (cli/_formatting.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A heading with a text, a table or both. All values are shown as text, never as markup."""

    title: str
    text: str = ""
    table_head: Sequence[str] = ()
    table_rows: Sequence[Sequence[str | float | None]] = ()
    """One cell per column; numbers are formatted by the page, None is an empty cell."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON-compatible data, which the page draws."""
        return {
            "title": self.title,
            "text": self.text,
            "table_head": list(self.table_head),
            "table_rows": [list(row) for row in self.table_rows],
        }


class SectionRun(Protocol):
    """What `Task.page_sections` may read of a run; `neural.runs.run.Run` is one.

    A protocol, because `core` and `tasks` do not import `runs`.
    """

    @property
    def path(self) -> Path: ...

    @property
    def settings(self) -> dict[str, Any]: ...

    def metadata(self, key: str) -> Any: ...

    def scalar_names(self) -> list[str]: ...

    def scalars(self, name: str, *, after: int = -1) -> tuple[Any, Any]:
        """(steps, values) of a metric after step `after`, as arrays."""
        ...
