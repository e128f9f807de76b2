"""Base class of results that print themselves as sections: text in Python, tables in notebooks.

A section (page_section.py) is a heading with a text, a table or both.
"""

from __future__ import annotations

from neural.core.html_document import Html, render_paragraph, render_section, render_table
from neural.core.page_section import PageSection
from neural.core.table import MAX_SHOWN_ROWS, format_number, format_section

REPR_WIDTH = 100
"""Characters per line."""


class Result:
    """A result with `to_sections`; its repr is the text of these sections."""

    def to_sections(self, width: int) -> list[PageSection]:
        """Texts and tables to print in a terminal of `width` columns."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n\n".join(format_section(section) for section in self.to_sections(REPR_WIDTH))

    def _repr_html_(self) -> str:
        return "\n".join(map(render_page_section, self.to_sections(REPR_WIDTH)))


def render_page_section(section: PageSection) -> str:
    """A section as HTML; everything is escaped."""
    children: list[Html] = [render_paragraph(line) for line in section.text.splitlines()]
    if section.table_rows:
        rows = [
            [cell if isinstance(cell, str) else format_number(cell) for cell in row]
            for row in section.table_rows[:MAX_SHOWN_ROWS]
        ]
        children.append(render_table(section.table_head, rows))
    hidden_count = len(section.table_rows) - MAX_SHOWN_ROWS
    if hidden_count > 0:
        children.append(render_paragraph(f"… and {hidden_count:,} more"))
    if not section.title:
        return "\n".join(children)
    return render_section(section.title, *children, level=4)
