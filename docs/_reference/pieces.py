"""Pieces of Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; what would end a cell too early is escaped or left out."""
    titles = list(head)
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows]
    lines = [titles, ["---"] * len(titles), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fence(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.strip(chr(10))}\n```"


def doc(thing: Any) -> str:
    """The docstring, paragraphs kept and lines joined; that of a base where there is none of its own."""
    return "\n\n".join(" ".join(part.split()) for part in (inspect.getdoc(thing) or "").split("\n\n"))


def joined(*parts: str) -> str:
    """Paragraphs under each other; empty ones are left out."""
    return "\n\n".join(part for part in parts if part) + "\n"
