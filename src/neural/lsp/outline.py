"""Outline of a `.neural` program: a tree of its networks, sections and calls.

Unlike the parser (neural/language/parser.py), the outline needs no valid syntax: it is built from
tokens alone, so that it works while the user is typing. For example, the end of the text
`Dense(10, activation=` is inside a call whose second argument is `activation`. Offsets are
character indices in the text, from 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from neural.core.diagnostics import MAX_SOURCE_CHARACTERS, DiagnosticCollector, SourceSpan
from neural.language.lexer import Token, tokenize
from neural.language.syntax import SECTION_NAMES

NodeKind = Literal["file", "network", "section", "block", "call", "group"]
"""A section is `name: …`, a block `name { … }`, a group a pair of brackets that is no call, such as
a tuple."""
BRACKET_KINDS = ("call", "group")


@dataclass(slots=True)
class OutlineArgument:
    """An argument of a call: offset of its start, its name if given, first token of its value."""

    start: int
    name: Token | None = None
    value: Token | None = None


@dataclass(slots=True, eq=False)
class OutlineNode:
    """A network, section, block, call or group of brackets, or the file (the root)."""

    kind: NodeKind
    name: str
    span: SourceSpan
    """Span of its name."""
    start: int
    """Offset after its opening token."""
    parent: OutlineNode | None = None
    end: int = 0
    """Offset of its closing token."""
    children: list[OutlineNode] = field(default_factory=list)
    arguments: list[OutlineArgument] = field(default_factory=list)
    """Arguments of a call, or items of a group."""

    def find_innermost(self, offset: int) -> OutlineNode:
        """The innermost node around an offset; this node if no child is around it."""
        for child in self.children:
            if child.start <= offset <= child.end:
                return child.find_innermost(offset)
        return self

    def find_argument(self, offset: int) -> tuple[int, OutlineArgument] | None:
        """The argument around an offset, with its index."""
        started = [
            (index, argument)
            for index, argument in enumerate(self.arguments)
            if argument.start <= offset
        ]
        return started[-1] if started else None


@dataclass(frozen=True, slots=True)
class Outline:
    """Tokens and nodes of a text."""

    text: str
    tokens: list[Token]
    root: OutlineNode

    def find_token(self, offset: int) -> Token | None:
        """The word that contains or ends at an offset, else the token that starts there."""
        touching = [
            token
            for token in self.tokens
            if token.span.start <= offset <= token.span.end and token.kind != "end"
        ]
        words = [token for token in touching if token.kind in ("name", "string", "number")]
        return next(iter(words or touching[::-1]), None)

    def find_token_before(self, offset: int) -> Token | None:
        """The last token that ends at or before an offset."""
        return next((token for token in self.tokens[-2::-1] if token.span.end <= offset), None)

    def is_comment(self, offset: int) -> bool:
        """Whether the offset is in a comment."""
        previous = self.find_token_before(offset)
        in_token = any(token.span.start < offset < token.span.end for token in self.tokens)
        return (
            not in_token
            and "#" in self.text[previous.span.end if previous else 0 : offset].rpartition("\n")[2]
        )


def build_outline(text: str) -> Outline:
    """Build the outline of a text; empty for texts longer than MAX_SOURCE_CHARACTERS."""
    tokens = tokenize(text if len(text) <= MAX_SOURCE_CHARACTERS else "", DiagnosticCollector())
    return Outline(text, tokens, _OutlineBuilder(tokens, len(text)).root)


class _OutlineBuilder:
    """Builds the tree from the tokens, one by one; `node` is the innermost open node."""

    def __init__(self, tokens: list[Token], length: int) -> None:
        self.tokens = tokens
        self.root = self.node = OutlineNode("file", "", SourceSpan(0, 0), 0)
        for index, token in enumerate(tokens[:-1]):
            self.read_token(index, token)
        while self.node is not self.root:
            self.close_node(length)
        self.root.end = length

    def token_kind(self, index: int) -> str:
        """Kind of the token at an index; "end" if there is none."""
        return self.tokens[index].kind if 0 <= index < len(self.tokens) else "end"

    def read_token(self, index: int, token: Token) -> None:
        """Open and close nodes at a token."""
        next_kind = self.token_kind(index + 1)
        is_section = (
            token.kind == "name"
            and next_kind in (":", "{")
            and (self.node.kind not in BRACKET_KINDS or token.is_first_on_line)
        )
        is_network = (
            is_section
            and next_kind == "{"
            and self.token_kind(index - 1) == "name"
            and not token.is_first_on_line
        )
        # Recover from brackets that are still open where a section, a block or a call on a new line
        # starts or ends: close them here.
        if self.node.kind in BRACKET_KINDS and (
            token.kind == "}"
            or (is_section and token.text in SECTION_NAMES)
            or self.is_bracket_missing(index, token)
        ):
            while self.node.kind in BRACKET_KINDS:
                self.close_node(token.span.start)
        if self.node.kind in BRACKET_KINDS:
            self.read_in_brackets(index, token)
        elif is_network:
            self.close_until(token, "network")
            self.open_node("network", token, self.tokens[index + 1])
        elif is_section:
            self.close_until(token, "section")
            self.open_node(
                "block" if next_kind == "{" else "section", token, self.tokens[index + 1]
            )
        elif token.kind == "}":
            self.close_until(token, "section")
            if self.node is not self.root:
                self.close_node(token.span.start)
        elif token.kind in ("(", "["):
            self.open_bracket(index, token)

    def is_bracket_missing(self, index: int, token: Token) -> bool:
        """Whether a call starts a line where a comma or closing bracket is missing before it."""
        return (
            token.is_first_on_line
            and self.token_kind(index + 1) == "("
            and self.token_kind(index - 1) not in (",", "(", "[", "=")
        )

    def read_in_brackets(self, index: int, token: Token) -> None:
        """Read a token inside brackets."""
        if token.kind in (")", "]"):
            self.close_node(token.span.start)
        elif token.kind == ",":
            self.node.arguments.append(OutlineArgument(token.span.end))
        elif token.kind in ("(", "["):
            self.open_bracket(index, token)
        elif token.kind == "name" and self.token_kind(index + 1) == "=":
            self.node.arguments[-1].name = token
        elif token.kind in ("name", "string", "number") and self.node.arguments[-1].value is None:
            self.node.arguments[-1].value = token

    def open_bracket(self, index: int, token: Token) -> None:
        """Open a call or group at `(` or `[`, with an empty first argument."""
        is_call = token.kind == "(" and self.token_kind(index - 1) == "name"
        self.open_node(
            "call" if is_call else "group", self.tokens[index - 1] if is_call else token, token
        )
        self.node.arguments.append(OutlineArgument(token.span.end))

    def close_until(self, token: Token, kind: NodeKind) -> None:
        """Close the nodes that cannot contain a node of `kind`: "section" or "network"."""
        while self.node.kind == "section" or (kind == "network" and self.node is not self.root):
            self.close_node(token.span.start)

    def open_node(self, kind: NodeKind, name: Token, mark: Token) -> None:
        """Open a node; `mark` is its opening token, and also `name` if it has none."""
        node = OutlineNode(
            kind, name.text if name is not mark else "", name.span, mark.span.end, self.node
        )
        self.node.children.append(node)
        self.node = node

    def close_node(self, end: int) -> None:
        """Close the innermost node at the offset `end`."""
        self.node.end = max(end, self.node.start)
        self.node = self.node.parent or self.root
