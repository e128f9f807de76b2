"""Helpers that format Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table. Pipes in cells are escaped, line breaks become spaces."""
    titles = list(head)
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows]
    lines = [titles, ["---"] * len(titles), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fence(text: str, language: str = "text") -> str:
    """A code block."""
    return f"```{language}\n{text.strip(chr(10))}\n```"


def docstring(documented: Any) -> str:
    """The docstring, or that of a base class; one line per paragraph."""
    return "\n\n".join(
        " ".join(paragraph.split())
        for paragraph in (inspect.getdoc(documented) or "").split("\n\n")
    )


def join_paragraphs(*paragraphs: str) -> str:
    """Paragraphs with blank lines between them; empty ones are left out."""
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"
