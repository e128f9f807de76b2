"""The language server (pygls) for `.neural` programs and for experiments in YAML.

A program declares networks; an experiment holds the settings of a training run. The server checks
both and reports diagnostics; all its other features are for programs only.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer

from neural import __version__
from neural.core.diagnostics import Diagnostic, SourceSpan, SourceText
from neural.language import diagnostic_codes
from neural.lsp.completion import list_completions
from neural.lsp.document import OutlineSymbol, ProgramDocument, list_symbols
from neural.lsp.hover import get_hover
from neural.lsp.positions import TextPositions
from neural.optim.catalogue import CATALOGUE

_TASK_KEY = re.compile(r"""^task[ \t]*:[ \t]*["']?([\w-]+)""", re.M)
"""The line `task: name`. A YAML file is an experiment if it has this line with a known task."""


def check_experiment(text: str) -> tuple[Diagnostic, ...]:
    """Errors in an experiment file; empty for YAML files that are no experiments."""
    match = _TASK_KEY.search(text)
    if match is None:
        return ()
    # Imported here, because pydantic is slow to import and only experiment files need it.
    from neural.core.settings import SettingsError
    from neural.tasks import registry
    from neural.training.load_task import read_experiment

    if registry.guess(match[1]) is None:
        return ()
    try:
        read_experiment(SourceText("experiment.yaml", text))
    except SettingsError as error:
        return error.diagnostics
    return ()


CHECK_DELAY_SECONDS = 0.15
"""A text is checked when the user has not typed for this time."""
SEVERITY_KINDS = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
COMPLETION_KINDS = {
    "layer": types.CompletionItemKind.Class,
    "argument": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.Value,
    "section": types.CompletionItemKind.Keyword,
}
SYMBOL_KINDS = {
    "network": types.SymbolKind.Module,
    "section": types.SymbolKind.Property,
    "block": types.SymbolKind.Property,
    "call": types.SymbolKind.Class,
}


class NeuralLanguageServer(LanguageServer):
    """The language server. Editors send the full text at every change: programs are short."""

    def __init__(self) -> None:
        super().__init__(
            "neural", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full
        )
        self.pending_checks: dict[str, asyncio.TimerHandle] = {}
        """Timer of the scheduled check, by URI."""

    def get_text(self, uri: str) -> str:
        """The text in the editor, or on disk if it is not open; "" if there is none."""
        try:
            return self.workspace.get_text_document(uri).source
        except (OSError, UnicodeDecodeError):
            return ""

    def get_document(self, uri: str) -> ProgramDocument:
        """The program in the editor; cached by text."""
        return _load_document(self.get_text(uri))

    def get_positions(self, uri: str) -> TextPositions:
        """Converter between offsets and LSP positions, in the encoding agreed with the editor."""
        encoding: Any = self.workspace.position_encoding
        return TextPositions(self.get_text(uri), getattr(encoding, "value", encoding) or "utf-16")

    def get_diagnostics(self, uri: str) -> tuple[Diagnostic, ...]:
        """The diagnostics of a program or an experiment."""
        if is_program(uri):
            return self.get_document(uri).diagnostics
        return _check_experiment_cached(self.get_text(uri))

    def publish_diagnostics(self, uri: str) -> None:
        """Check a text and send its diagnostics to the editor."""
        self.pending_checks.pop(uri, None)
        positions = self.get_positions(uri)
        diagnostics = [
            to_lsp_diagnostic(diagnostic, positions, uri)
            for diagnostic in self.get_diagnostics(uri)
        ]
        document_version = self.workspace.get_text_document(uri).version
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=uri, diagnostics=diagnostics, version=document_version
            )
        )

    def cancel_check(self, uri: str) -> None:
        """Cancel a scheduled check."""
        if (handle := self.pending_checks.pop(uri, None)) is not None:
            handle.cancel()


@lru_cache(maxsize=16)
def _load_document(text: str) -> ProgramDocument:
    """The parsed program; CATALOGUE lists the layers, losses and optimizers it may name."""
    return ProgramDocument(text, CATALOGUE)


_check_experiment_cached = lru_cache(maxsize=16)(check_experiment)
server = NeuralLanguageServer()


def is_program(uri: str) -> bool:
    """Whether the file is a program, not an experiment in YAML."""
    return not uri.lower().endswith((".yaml", ".yml"))


def to_lsp_diagnostic(
    diagnostic: Diagnostic, positions: TextPositions, uri: str
) -> types.Diagnostic:
    """A diagnostic in LSP form.

    Help texts are part of the message, labels are related information, the code links to its
    explanation.
    """
    explanation = diagnostic_codes.EXPLANATIONS_FOLDER / f"{diagnostic.code}.md"
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(uri, to_lsp_range(label.span, positions)), label.text
        )
        for label in diagnostic.labels
    ]
    return types.Diagnostic(
        range=to_lsp_range(diagnostic.span, positions),
        message="\n".join([diagnostic.message, *(f"help: {text}" for text in diagnostic.helps)]),
        severity=SEVERITY_KINDS[diagnostic.severity],
        code=diagnostic.code,
        code_description=types.CodeDescription(explanation.as_uri())
        if explanation.exists()
        else None,
        source="neural",
        related_information=related or None,
    )


def to_lsp_range(span: SourceSpan, positions: TextPositions) -> types.Range:
    """A span of character offsets as lines and columns."""
    start, end = positions.to_range(span)
    return types.Range(types.Position(*start), types.Position(*end))


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def on_open(ls: NeuralLanguageServer, params: types.DidOpenTextDocumentParams) -> None:
    """Check immediately."""
    ls.publish_diagnostics(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def on_change(ls: NeuralLanguageServer, params: types.DidChangeTextDocumentParams) -> None:
    """Check after a pause in typing."""
    uri = params.text_document.uri
    ls.cancel_check(uri)
    ls.pending_checks[uri] = asyncio.get_running_loop().call_later(
        CHECK_DELAY_SECONDS, ls.publish_diagnostics, uri
    )


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def on_close(ls: NeuralLanguageServer, params: types.DidCloseTextDocumentParams) -> None:
    """Clear the diagnostics."""
    ls.cancel_check(params.text_document.uri)
    ls.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(params.text_document.uri, [])
    )


@server.feature(types.TEXT_DOCUMENT_HOVER)
def on_hover(ls: NeuralLanguageServer, params: types.HoverParams) -> types.Hover | None:
    """Explain what is under the cursor."""
    uri = params.text_document.uri
    positions = ls.get_positions(uri)
    offset = positions.to_offset(params.position.line, params.position.character)
    hover = get_hover(ls.get_document(uri), offset) if is_program(uri) else None
    if hover is None:
        return None
    text, span = hover
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, text), to_lsp_range(span, positions)
    )


@server.feature(
    types.TEXT_DOCUMENT_COMPLETION,
    types.CompletionOptions(trigger_characters=["(", ",", "=", '"', "'"]),
)
def on_completion(
    ls: NeuralLanguageServer, params: types.CompletionParams
) -> list[types.CompletionItem]:
    """Completions at the cursor, in the order of the declarations."""
    uri = params.text_document.uri
    if not is_program(uri):
        return []
    positions = ls.get_positions(uri)
    offset = positions.to_offset(params.position.line, params.position.character)
    span, completions = list_completions(ls.get_document(uri), offset)
    supports_snippets = get_capability(
        ls.client_capabilities, "text_document.completion.completion_item.snippet_support", False
    )
    insert_formats = {True: types.InsertTextFormat.Snippet, False: types.InsertTextFormat.PlainText}
    return [
        types.CompletionItem(
            label=completion.label,
            kind=COMPLETION_KINDS[completion.kind],
            documentation=types.MarkupContent(types.MarkupKind.Markdown, completion.doc)
            if completion.doc
            else None,
            insert_text_format=insert_formats[bool(supports_snippets and completion.is_snippet)],
            text_edit=types.TextEdit(
                to_lsp_range(span, positions),
                completion.text if supports_snippets else completion.plain_text,
            ),
            filter_text=completion.label,
            sort_text=f"{index:04}",
        )
        for index, completion in enumerate(completions)
    ]


@server.feature(types.TEXT_DOCUMENT_FORMATTING)
def on_formatting(
    ls: NeuralLanguageServer, params: types.DocumentFormattingParams
) -> list[types.TextEdit]:
    """Format like `neural fmt`; a text with syntax errors stays as it is."""
    uri = params.text_document.uri
    text = ls.get_text(uri)
    formatted = ls.get_document(uri).format_text() if is_program(uri) else None
    if formatted is None or formatted == text:
        return []
    return [
        types.TextEdit(to_lsp_range(SourceSpan(0, len(text)), ls.get_positions(uri)), formatted)
    ]


@server.feature(
    types.TEXT_DOCUMENT_CODE_ACTION,
    types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
)
def on_code_action(
    ls: NeuralLanguageServer, params: types.CodeActionParams
) -> list[types.CodeAction]:
    """Quick fixes for diagnostics in the range."""
    uri = params.text_document.uri
    positions = ls.get_positions(uri)
    start, end = (
        positions.to_offset(position.line, position.character)
        for position in (params.range.start, params.range.end)
    )
    actions = []
    for diagnostic in ls.get_diagnostics(uri):
        if (
            diagnostic.fix is not None
            and diagnostic.span.start <= end
            and start <= diagnostic.span.end
        ):
            edits = [
                types.TextEdit(to_lsp_range(edit.span, positions), edit.text)
                for edit in diagnostic.fix.edits
            ]
            text = " ".join(diagnostic.fix.text.split())
            action = types.CodeAction(
                title=f"Change to `{text}`" if text else "Leave it out",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[to_lsp_diagnostic(diagnostic, positions, uri)],
                is_preferred=True,
                edit=types.WorkspaceEdit(changes={uri: edits}),
            )
            actions.append(action)
    return actions


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def on_document_symbol(
    ls: NeuralLanguageServer, params: types.DocumentSymbolParams
) -> list[types.DocumentSymbol]:
    """Networks with their sections and layers."""
    uri = params.text_document.uri
    positions = ls.get_positions(uri)

    def convert(symbol: OutlineSymbol) -> types.DocumentSymbol:
        return types.DocumentSymbol(
            symbol.name,
            SYMBOL_KINDS[symbol.kind],
            range=to_lsp_range(symbol.full_span, positions),
            selection_range=to_lsp_range(symbol.span, positions),
            children=[convert(child) for child in symbol.children],
        )

    symbols = list_symbols(ls.get_document(uri)) if is_program(uri) else ()
    return [convert(symbol) for symbol in symbols]
