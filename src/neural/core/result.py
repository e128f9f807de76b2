"""Base class of what functions return that answer a question.

result = neural.ablate("novel")
result                            prints itself, in a terminal and in a notebook
result.to_dict()                  everything as data for JSON
result.to_dataframe()             its main table; `result.tables` has all of them
result.save("heads.csv")          .json, .csv, .html, and .svg, .pdf, .png where there is a figure
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar

from neural.core.errors import CommandFailedError, NeuralError, describe_os_error
from neural.core.escape import escape_json
from neural.core.files import write_atomically
from neural.core.html_document import (
    Html,
    render_document,
    render_paragraph,
    render_section,
    render_table,
)
from neural.core.page_section import PageSection
from neural.core.table import MAX_SHOWN_ROWS, Table, format_number, format_section

REPR_WIDTH = 100
"""Characters per line."""
HTML_SUFFIXES = (".html", ".htm")


class Result:
    """Prints itself; gives data, tables and files. A subclass has sections, data and tables."""

    figure_suffixes: ClassVar[tuple[str, ...]] = ()
    """Endings of the figures that `draw` writes."""

    def to_sections(self, width: int) -> list[PageSection]:
        """Texts and tables to print in a terminal of `width` columns."""
        raise NotImplementedError

    def build_dict(self) -> dict[str, Any]:
        """All data by name; numbers may be NaN."""
        raise NotImplementedError

    @property
    def tables(self) -> dict[str, Table]:
        """Tables by name, the main one first."""
        return {}

    def render_page(self) -> str:
        """An HTML page that opens offline; by default what is printed."""
        first, *_ = sections = self.to_sections(REPR_WIDTH)
        body = [Html(render_page_section(section, max_rows=None)) for section in sections]
        return render_document(first.title or type(self).__name__, "", body)

    def draw(self, path: Path) -> None:
        """Write a figure for a paper; `path` ends with one of `figure_suffixes`."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """All data for JSON; NaN and infinities become None."""
        return to_json_data(self.build_dict())

    def to_json(self) -> str:
        """JSON text without control characters, safe to print."""
        return escape_json(json.dumps(self.to_dict(), indent=1, ensure_ascii=False))

    def to_dataframe(self, table: str | None = None) -> Any:
        """A pandas DataFrame of the main table, or of the one called `table`."""
        return self.get_table(table).to_dataframe()

    def get_table(self, name: str | None = None) -> Table:
        """The main table, or the one with this name; NeuralError if there is none."""
        tables = self.tables
        if name is None and tables:
            return next(iter(tables.values()))
        if name not in tables:
            known = ", ".join(tables) or "none"
            raise NeuralError(f"no table is called `{name}`", hint=f"tables: {known}")
        return tables[name]

    def save(self, path: str | Path) -> Path:
        """Write all data (.json), the main table (.csv), a page (.html) or a figure.

        NeuralError for another suffix, or if the file cannot be written.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        texts = {".json": lambda: f"{self.to_json()}\n", ".csv": lambda: self.get_table().to_csv()}
        texts |= dict.fromkeys(HTML_SUFFIXES, self.render_page)
        if suffix not in (*texts, *self.figure_suffixes):
            figures = f", or {', '.join(self.figure_suffixes)} for a figure"
            known = ".html, .json or .csv" + figures * bool(self.figure_suffixes)
            raise NeuralError(f"{path}: name it {known}")
        try:
            if suffix in texts:
                write_atomically(path, texts[suffix](), durable=False)
            else:
                self.draw(path)
        except OSError as error:
            raise CommandFailedError(f"{path}: {describe_os_error(error)}") from None
        return path

    def __repr__(self) -> str:
        return "\n\n".join(format_section(section) for section in self.to_sections(REPR_WIDTH))

    def _repr_html_(self) -> str:
        return "\n".join(map(render_page_section, self.to_sections(REPR_WIDTH)))


def to_json_data(value: Any) -> Any:
    """The same data with plain numbers, lists, texts and dicts; NaN and infinities become None."""
    if isinstance(value, Mapping):
        return {str(key): to_json_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_data(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if hasattr(value, "to_dict"):
        return to_json_data(value.to_dict())
    if is_dataclass(value):
        return {entry.name: to_json_data(getattr(value, entry.name)) for entry in fields(value)}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return to_json_data(value.tolist())
    return str(value)


def render_page_section(section: PageSection, max_rows: int | None = MAX_SHOWN_ROWS) -> str:
    """A section as HTML, with the first `max_rows` of its table; everything is escaped."""
    children: list[Html] = [render_paragraph(line) for line in section.text.splitlines()]
    if section.table_rows:
        rows = [
            [cell if isinstance(cell, str) else format_number(cell) for cell in row]
            for row in section.table_rows[:max_rows]
        ]
        children.append(render_table(section.table_head, rows))
    hidden_count = 0 if max_rows is None else len(section.table_rows) - max_rows
    if hidden_count > 0:
        children.append(render_paragraph(f"… and {hidden_count:,} more"))
    if not section.title:
        return "\n".join(children)
    return render_section(section.title, *children, level=4)
