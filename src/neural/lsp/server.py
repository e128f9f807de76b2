"""The language server: pygls around the functions of this folder. Programs, and experiments in YAML."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer

from neural.core.diagnostics import Diagnostic, Where
from neural.language import codes
from neural.lsp.completion import complete
from neural.lsp.document import Document
from neural.lsp.experiments import experiment_diagnostics
from neural.lsp.hover import hover
from neural.lsp.positions import Positions
from neural.lsp.symbols import Symbol, symbols
from neural.standard import CATALOGUE

PAUSE = 0.15
"""Seconds without a keystroke before a text is checked."""
SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
OFFERS = {
    "layer": types.CompletionItemKind.Class,
    "argument": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.Value,
    "section": types.CompletionItemKind.Keyword,
}
SYMBOLS = {
    "network": types.SymbolKind.Module,
    "section": types.SymbolKind.Property,
    "block": types.SymbolKind.Property,
    "call": types.SymbolKind.Class,
}


class Server(LanguageServer):
    """Texts come whole with every change: programs are short, and nothing can get out of step."""

    def __init__(self) -> None:
        super().__init__("neural", version("neural"), text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.waiting: dict[str, asyncio.TimerHandle] = {}

    def text(self, uri: str) -> str:
        """As it stands in the editor, or on the disk where it is not open there; else there is nothing to say about it.
        """
        try:
            return self.workspace.get_text_document(uri).source
        except (OSError, UnicodeDecodeError):
            return ""

    def document(self, uri: str) -> Document:
        """The program in the editor; what was found out about the same text is kept."""
        return _document(self.text(uri))

    def positions(self, uri: str) -> Positions:
        """Places in the text, counted as was agreed on."""
        units: Any = self.workspace.position_encoding
        return Positions(self.text(uri), getattr(units, "value", units) or "utf-16")

    def said(self, uri: str) -> tuple[Diagnostic, ...]:
        """What is to be said about a text."""
        if is_program(uri):
            return self.document(uri).diagnostics
        return _experiment(self.text(uri))

    def publish(self, uri: str) -> None:
        """Check a text and tell the editor."""
        self.waiting.pop(uri, None)
        positions = self.positions(uri)
        found = [diagnostic(one, positions, uri) for one in self.said(uri)]
        number = self.workspace.get_text_document(uri).version
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=number)
        )

    def forget(self, uri: str) -> None:
        """Do not check it any more."""
        if (handle := self.waiting.pop(uri, None)) is not None:
            handle.cancel()


@lru_cache(maxsize=16)
def _document(text: str) -> Document:
    return Document(text, CATALOGUE)


_experiment = lru_cache(maxsize=16)(experiment_diagnostics)
server = Server()


def is_program(uri: str) -> bool:
    """Whether it is a program rather than an experiment."""
    return not uri.lower().endswith((".yaml", ".yml"))


def diagnostic(one: Diagnostic, positions: Positions, uri: str) -> types.Diagnostic:
    """As editors want it: help lines in the message, other places beside it, the code a link to its explanation."""
    story = codes.FOLDER / f"{one.code}.md"
    related = [
        types.DiagnosticRelatedInformation(types.Location(uri, span(label.where, positions)), label.text)
        for label in one.labels
    ]
    return types.Diagnostic(
        range=span(one.where, positions),
        message="\n".join([one.message, *(f"help: {text}" for text in one.helps)]),
        severity=SEVERITY[one.severity],
        code=one.code,
        code_description=types.CodeDescription(story.as_uri()) if story.exists() else None,
        source="neural",
        related_information=related or None,
    )


def span(where: Where, positions: Positions) -> types.Range:
    """A stretch of text as editors count it."""
    start, end = positions.span(where)
    return types.Range(types.Position(*start), types.Position(*end))


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def opened(ls: Server, asked: types.DidOpenTextDocumentParams) -> None:
    """Checked at once."""
    ls.publish(asked.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def changed(ls: Server, asked: types.DidChangeTextDocumentParams) -> None:
    """Checked as soon as nobody types."""
    uri = asked.text_document.uri
    ls.forget(uri)
    ls.waiting[uri] = asyncio.get_running_loop().call_later(PAUSE, ls.publish, uri)


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def closed(ls: Server, asked: types.DidCloseTextDocumentParams) -> None:
    """Nothing more to say."""
    ls.forget(asked.text_document.uri)
    ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(asked.text_document.uri, []))


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hovered(ls: Server, asked: types.HoverParams) -> types.Hover | None:
    """What stands under the pointer."""
    uri = asked.text_document.uri
    positions = ls.positions(uri)
    place = positions.offset(asked.position.line, asked.position.character)
    found = hover(ls.document(uri), place) if is_program(uri) else None
    if found is None:
        return None
    text, where = found
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), span(where, positions))


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["(", ",", "=", '"', "'"]))
def completed(ls: Server, asked: types.CompletionParams) -> list[types.CompletionItem]:
    """What could be written here, in the order of the declarations."""
    uri = asked.text_document.uri
    if not is_program(uri):
        return []
    positions = ls.positions(uri)
    place = positions.offset(asked.position.line, asked.position.character)
    where, offers = complete(ls.document(uri), place)
    fills_in = get_capability(ls.client_capabilities, "text_document.completion.completion_item.snippet_support", False)
    forms = {True: types.InsertTextFormat.Snippet, False: types.InsertTextFormat.PlainText}
    return [
        types.CompletionItem(
            label=one.label,
            kind=OFFERS[one.kind],
            documentation=types.MarkupContent(types.MarkupKind.Markdown, one.doc) if one.doc else None,
            insert_text_format=forms[bool(fills_in and one.snippet)],
            text_edit=types.TextEdit(span(where, positions), one.text if fills_in else one.plain),
            filter_text=one.label,
            sort_text=f"{number:04}",
        )
        for number, one in enumerate(offers)
    ]


@server.feature(types.TEXT_DOCUMENT_FORMATTING)
def formatted(ls: Server, asked: types.DocumentFormattingParams) -> list[types.TextEdit]:
    """`neural fmt`; a text with syntax mistakes stays as it is."""
    uri = asked.text_document.uri
    text = ls.text(uri)
    laid_out = ls.document(uri).formatted() if is_program(uri) else None
    if laid_out is None or laid_out == text:
        return []
    return [types.TextEdit(span(Where(0, len(text)), ls.positions(uri)), laid_out)]


@server.feature(
    types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
)
def acted(ls: Server, asked: types.CodeActionParams) -> list[types.CodeAction]:
    """The diagnostics in this range that can be mended without asking."""
    uri = asked.text_document.uri
    positions = ls.positions(uri)
    start, end = (positions.offset(one.line, one.character) for one in (asked.range.start, asked.range.end))
    actions = []
    for one in ls.said(uri):
        if one.fix is not None and one.where.start <= end and start <= one.where.end:
            edit = types.TextEdit(span(one.fix.where, positions), one.fix.text)
            action = types.CodeAction(
                title=f"Change to `{one.fix.text}`",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic(one, positions, uri)],
                is_preferred=True,
                edit=types.WorkspaceEdit(changes={uri: [edit]}),
            )
            actions.append(action)
    return actions


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def listed(ls: Server, asked: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """Networks with their sections and layers."""
    uri = asked.text_document.uri
    positions = ls.positions(uri)

    def made(one: Symbol) -> types.DocumentSymbol:
        inside = [made(each) for each in one.inside]
        where, whole = span(one.where, positions), span(one.whole, positions)
        return types.DocumentSymbol(one.name, SYMBOLS[one.kind], whole, where, children=inside)

    return [made(one) for one in symbols(ls.document(uri))] if is_program(uri) else []
