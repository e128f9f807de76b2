"""What stands under the pointer, in words."""

from __future__ import annotations

from neural.core.diagnostics import Where
from neural.language.lexer import Token
from neural.language.train import Train
from neural.lsp.document import Document
from neural.lsp.meaning import NETWORK, SECTIONS, declaration, entry, registry_of, setting_at
from neural.lsp.outline import Part
from neural.lsp.wording import of_entry, of_network, of_place, of_setting


def hover(document: Document, offset: int) -> tuple[str, Where] | None:
    """Markdown, and the stretch of text that it is about; None where there is nothing to say."""
    token = document.outline.token(offset)
    if token is None or token.kind not in ("name", "string", "number") or document.outline.comment(offset):
        return None
    named = _named(document.outline.file, token)
    said = _part(document, named) if named is not None else _word(document, token)
    return (said, token.where) if said else None


def _named(part: Part, token: Token) -> Part | None:
    """The part whose name this is."""
    for one in part.inside:
        if one.where == token.where and one.kind != "group":
            return one
        if one.where.start <= token.where.start < one.end:
            return _named(one, token)
    return None


def _part(document: Document, part: Part) -> str | None:
    if part.kind == "network":
        network = document.network(part)
        return of_network(network) if network else NETWORK
    if part.kind == "call":
        declared = declaration(part, document.catalogue)
        registry = registry_of(part.outer, document.catalogue, part.where.start) if part.outer else None
        if declared is None or registry is None:
            return None
        found = document.placed(part) if registry is document.catalogue.layers else None
        return of_entry(declared, registry) + (f"\n\n{of_place(*found)}" if found else "")
    if part.outer is not None and part.outer.kind == "block":
        one = Train.settings().get(part.name) if part.outer.name == "train" else None
        return of_setting(one, "train") if one else None
    return f"`{part.name}`: {SECTIONS[part.name]}" if part.name in SECTIONS else None


def _word(document: Document, token: Token) -> str | None:
    """An argument's name, a value."""
    part = document.outline.file.at(token.where.start)
    while part.kind == "group" and part.outer is not None:
        part = part.outer
    if token.text == "network" and part.kind == "file":
        return NETWORK
    one = setting_at(part, document.catalogue, token.where.start)
    given = part.argument(token.where.start)
    is_name = given is not None and given[1].name is not None and given[1].name.where == token.where
    if token.kind == "string" and not is_name:
        registry = registry_of(part, document.catalogue, token.where.start)
        chosen = entry(registry, str(token.value))
        if chosen is not None and registry is not None:
            return of_entry(chosen, registry)
    return of_setting(one, part.name if part.kind == "call" else "train") if one else None
