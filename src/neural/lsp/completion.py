"""Completion for editors: what can be written at an offset of a `.neural` program.

The outline (outline.py) gives the node around the offset: file, network, section, `train` block,
call or other brackets. A registry lists, by name, the entries of one kind that can be called:
layers, losses, optimizers … A declaration is the class of an entry, an ArgumentSpec describes one
of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from neural.core.diagnostics import SourceSpan
from neural.core.registry import Registry
from neural.language.argument_types import BoolType, EntryListType, EntryType
from neural.language.declaration import ArgumentSpec, Declaration
from neural.language.train_options import TrainOptions
from neural.lsp.document import ProgramDocument
from neural.lsp.hover import describe_argument, describe_entry
from neural.lsp.lookup import (
    NETWORK_DOC,
    SECTION_DOCS,
    find_argument_spec,
    find_declaration,
    find_entry,
    find_registry,
    list_arguments,
    list_options,
)
from neural.lsp.outline import OutlineNode

SECTION_SNIPPETS = {
    "input": "input: (${1:100}, ${2:64})",
    "layers": "layers:\n  $0",
    "loss": 'loss: "$1"',
    "optimizer": "optimizer: $0",
    "train": "train {\n  $0\n}",
}
"""Text that completes a section; `$1` and `${1:value}` are placeholders of the editor."""
NETWORK_SNIPPET = "network ${1:Name} {\n  input: (${2:100}, ${3:64})\n  layers:\n    $0\n}"
NO_COMPLETION_AFTER = ("*", "network")
"""After these tokens, the user writes a number or a new name, which cannot be completed."""
_PLACEHOLDER = re.compile(r"\$(?:\d|\{\d:(\d*)[^}]*\})")


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion item: `text` is inserted; `label` and `doc` (Markdown) are shown.

    If `is_snippet`, `text` contains placeholders of the editor, such as `$1`.
    """

    label: str
    kind: str
    doc: str
    text: str
    is_snippet: bool = False

    @property
    def plain_text(self) -> str:
        """The text for editors without snippets: placeholders are replaced by their numbers.

        `${1:100}` becomes `100`; placeholders without a number are removed.
        """
        return _PLACEHOLDER.sub(r"\1", self.text) if self.is_snippet else self.text


def list_completions(document: ProgramDocument, offset: int) -> tuple[SourceSpan, list[Completion]]:
    """The completions at an offset, and the span of text that they replace."""
    outline = document.outline
    token = outline.find_token(offset)
    if outline.is_comment(offset):
        return SourceSpan(offset, offset), []
    if token is not None and token.kind == "string" and token.span.start < offset:
        is_closed = len(token.text) > 1 and document.text[token.span.end - 1] == token.text[0]
        inner = SourceSpan(token.span.start + 1, token.span.end - is_closed)
        if offset <= inner.end:
            return inner, list(_complete_string(document, token.span.start))
        return SourceSpan(offset, offset), []
    previous = outline.find_token_before(
        token.span.start if token is not None and token.kind == "name" else offset
    )
    if (token is not None and token.kind == "number") or (
        previous is not None and previous.text in NO_COMPLETION_AFTER
    ):
        return SourceSpan(offset, offset), []
    is_word = token is not None and token.kind == "name" and token.span.start < offset
    word = token.span if token is not None and is_word else SourceSpan(offset, offset)
    next_character = document.text[word.end : word.end + 40].lstrip()[:1]
    return word, list(_complete_word(document, word, next_character))


def _complete_string(document: ProgramDocument, offset: int) -> Iterator[Completion]:
    """Completions inside quotes; `offset` is that of the opening quote."""
    node = document.outline.root.find_innermost(offset)
    registry = find_registry(node, document.catalogue, offset)
    spec = find_argument_spec(node, document.catalogue, offset)
    names = (
        list_options(spec)
        if spec
        else registry.names()
        if registry and node.kind == "section"
        else []
    )
    for name in names:
        entry = find_entry(registry, name)
        yield Completion(
            name, "value", describe_entry(entry, registry) if entry and registry else "", name
        )


def _complete_word(
    document: ProgramDocument, word: SourceSpan, next_character: str
) -> Iterator[Completion]:
    """Completions of a word outside quotes.

    `word` is its span, `next_character` the first character after it that is not a space.
    """
    node = document.outline.root.find_innermost(word.start)
    if node.kind == "group":  # brackets that are no call: a tuple or list of numbers
        return
    if node.kind == "call":
        yield from _complete_call(document, node, word, next_character)
    elif node.kind == "section" and not _is_section_finished(document, node, word):
        yield from _complete_section(document, node, word, next_character)
    else:
        if node.kind == "section":
            yield from (
                _complete_calls(document.catalogue.layers, next_character)
                if node.name == "layers"
                else ()
            )
            node = node.parent or node
        yield from _complete_line_start(node, next_character)


def _is_section_finished(document: ProgramDocument, section: OutlineNode, word: SourceSpan) -> bool:
    """Whether a new line starts after a section's value, so that a new section may follow."""
    before = document.text[section.start : word.start]
    is_new_line = not before.rpartition("\n")[2].strip() and "\n" in before
    return is_new_line and (section.name == "layers" or bool(before.strip()))


def _complete_line_start(node: OutlineNode, next_character: str) -> Iterator[Completion]:
    """What can start a line of a network, of `train`, or of a file."""
    given_names = {child.name for child in node.children}
    if node.kind == "block":
        for spec in TrainOptions.argument_specs().values() if node.name == "train" else ():
            if spec.name not in given_names:
                yield Completion(
                    spec.name,
                    "argument",
                    describe_argument(spec, "train"),
                    _append_mark(spec.name, ": ", next_character),
                )
        return
    if node.kind == "file":
        yield Completion("network", "section", NETWORK_DOC, NETWORK_SNIPPET, is_snippet=True)
    for name, doc in SECTION_DOCS.items():
        if name not in given_names and (node.kind == "network" or name == "train"):
            has_mark = next_character in (":", "{")
            yield Completion(
                name,
                "section",
                doc,
                name if has_mark else SECTION_SNIPPETS[name],
                is_snippet=not has_mark,
            )


def _complete_section(
    document: ProgramDocument, node: OutlineNode, word: SourceSpan, next_character: str
) -> Iterator[Completion]:
    """The value of a section, or of a key of `train`."""
    registry = find_registry(node, document.catalogue, word.start)
    spec = find_argument_spec(node, document.catalogue, word.start)
    if spec is not None:
        yield from _complete_value(spec, next_character)
    elif registry is not None:
        # Entries that are named like their files ("mse"), not like their classes (`Adam`), may be
        # written as strings.
        if registry.spelling == "file":
            yield from _complete_quoted_entries(registry)
        yield from _complete_calls(registry, next_character)


def _complete_call(
    document: ProgramDocument, call: OutlineNode, word: SourceSpan, next_character: str
) -> Iterator[Completion]:
    """Names of the arguments that are not given yet; after `=`, values of the argument."""
    match = call.find_argument(word.start)
    declaration = find_declaration(call, document.catalogue)
    if match is None or declaration is None:
        return
    index, argument = match
    spec = find_argument_spec(call, document.catalogue, word.start)
    if argument.name is not None and argument.name.span.end <= word.start:
        yield from _complete_value(spec, next_character) if spec else ()
        return
    # A list of entries is written without the argument's name: `Residual(Dense(8), Dense(8))`. So
    # its values are completed where other arguments have their names.
    if spec is not None and isinstance(spec.kind, EntryListType):
        yield from _complete_value(spec, next_character)
    order = list(declaration.argument_specs())
    given_names = {
        other.name.text
        for other in call.arguments
        if other.name is not None and other is not argument
    }
    given_names |= {
        name
        for position, name in enumerate(order)
        if position < index and call.arguments[position].name is None
    }
    for name, argument_spec in list_arguments(call, document.catalogue).items():
        is_given = bool(given_names & {name, *argument_spec.aliases})
        if not is_given and not isinstance(argument_spec.kind, EntryListType):
            # A call also takes the arguments of an entry that one of its arguments names, such as
            # `window` in `attention="sparse", window=7`.
            owner = call.name if name in order else "the chosen entry"
            yield Completion(
                name,
                "argument",
                describe_argument(argument_spec, owner),
                _append_mark(name, "=", next_character),
            )


def _complete_value(spec: ArgumentSpec, next_character: str) -> Iterator[Completion]:
    """Values of an argument, as far as they can be listed."""
    if isinstance(spec.kind, BoolType):
        yield from (
            Completion(word, "value", describe_argument(spec, spec.name), word)
            for word in ("true", "false")
        )
    elif isinstance(spec.kind, EntryType):
        # Where a number is possible, as for `learning_rate`, the entries (schedules) have required
        # arguments and are written as calls: `CosineDecay(0.001, 1000)`. Entries of other arguments
        # are written as strings.
        if spec.kind.or_number is None:
            yield from _complete_quoted_entries(spec.kind.registry)
        else:
            yield from _complete_calls(spec.kind.registry, next_character)
    elif isinstance(spec.kind, EntryListType):
        yield from _complete_calls(spec.kind.registry, next_character)
    else:
        yield from (
            Completion(f'"{word}"', "value", describe_argument(spec, spec.name), f'"{word}"')
            for word in list_options(spec)
        )


def _complete_quoted_entries(registry: Registry[Any]) -> Iterator[Completion]:
    """The entries of a registry as strings."""
    for name in registry.names():
        yield Completion(
            f'"{name}"', "value", describe_entry(registry.get(name), registry), f'"{name}"'
        )


def _complete_calls(registry: Registry[Any], next_character: str) -> Iterator[Completion]:
    """The entries of a registry as calls; brackets are added unless they follow already."""
    for name in registry.names():
        declaration = registry.get(name)
        has_bracket = next_character == "("
        text = name if has_bracket else f"{name}({_format_required_arguments(declaration)})"
        yield Completion(
            name, "layer", describe_entry(declaration, registry), text, is_snippet=not has_bracket
        )


def _format_required_arguments(declaration: type[Declaration]) -> str:
    """The required arguments as placeholders, with names where the formatter writes them."""
    required = [spec for spec in declaration.argument_specs().values() if spec.is_required]
    return ", ".join(
        f"{spec.name}=${number}" if declaration.print_all_names else f"${{{number}:{spec.name}}}"
        for number, spec in enumerate(required, start=1)
    )


def _append_mark(name: str, mark: str, next_character: str) -> str:
    """The name with `mark` (`=` or `: `), unless it follows already."""
    return name if next_character == mark.strip() else f"{name}{mark}"
