"""The networks of a text with their sections and layers, for an editor's outline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from neural.core.diagnostics import Where
from neural.lsp.document import Document
from neural.lsp.outline import Part


@dataclass(frozen=True, slots=True)
class Symbol:
    """One line of the outline; `whole` is what it spans, `where` its name."""

    kind: str
    name: str
    where: Where
    whole: Where
    inside: tuple[Symbol, ...]


def symbols(document: Document) -> tuple[Symbol, ...]:
    """The outline."""
    return tuple(_symbols(document.outline.file))


def _symbols(part: Part) -> Iterator[Symbol]:
    for one in part.inside:
        if one.kind != "group" and one.name:
            inside = tuple(_symbols(one)) if one.kind != "call" else ()
            yield Symbol(one.kind, one.name, one.where, Where(one.where.start, max(one.where.end, one.end)), inside)
