"""Syntax tree of a `.neural` program, with spans and comments; names are not looked up yet.

A `tail` holds the comments before a closing bracket or the end; a `broken` node has a syntax error.

program : (network | section | layer)*              sections and layers alone: fragments
network : "network" NAME "{" section* "}"
section : "layers" ":" layer* | NAME ":" value | NAME "{" (NAME ":" value)* "}"
layer   : call ("*" INT)?
call    : NAME "(" (argument ("," argument)* ","?)? ")"
argument: (NAME "=")? value
value   : NUMBER | STRING | "true" | "false" | "None" | call | "(" values ")" | "[" values "]"
"""

from __future__ import annotations

from dataclasses import dataclass, field

from neural.core.diagnostics import SourceSpan

Scalar = int | float | str | bool | None

SECTION_NAMES = ("input", "layers", "loss", "optimizer", "train")
"""Sections of a network. The parser resumes at them after an error; `check` refuses others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comments:
    """Comments of a line: above it, behind it, and whether a blank line comes first.

    Each is its text from `#` on; an empty text among those above is a blank line.
    """

    above: tuple[str, ...] = ()
    behind: str = ""
    blank: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A number, string, bool or None. `text` is the spelling of a number (`2e-5`, `10_000`)."""

    value: Scalar
    text: str
    span: SourceSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceLiteral:
    """A tuple or a list, by `bracket`: `(` or `[`; its items are arguments without names."""

    bracket: str
    items: tuple[Argument, ...]
    span: SourceSpan
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallExpression:
    """`Name(…)`. A broken call contains a syntax error: its arguments are incomplete."""

    name: str
    name_span: SourceSpan
    arguments: tuple[Argument, ...]
    span: SourceSpan
    tail: tuple[str, ...] = ()
    broken: bool = False


Value = Literal | SequenceLiteral | CallExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A value with or without a name."""

    name: str | None
    value: Value
    span: SourceSpan
    comments: Comments = field(default_factory=Comments)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerStatement:
    """A call in `layers:`, optionally with `* N`."""

    call: CallExpression
    copies: Literal | None
    """N, if the program gives it."""
    span: SourceSpan
    comments: Comments = field(default_factory=Comments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`name: value`, `layers:` with its layers, or `name { … }` with its pairs (sections again)."""

    name: str
    name_span: SourceSpan
    body: Value | tuple[LayerStatement, ...] | tuple[Section, ...]
    is_block: bool
    """Whether it is written `name { … }`."""
    span: SourceSpan
    comments: Comments = field(default_factory=Comments)
    tail: tuple[str, ...] = ()
    broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkBlock:
    """`network Name { … }`."""

    name: str
    name_span: SourceSpan
    sections: tuple[Section, ...]
    span: SourceSpan
    comments: Comments = field(default_factory=Comments)
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The content of a file."""

    items: tuple[NetworkBlock | Section | LayerStatement, ...]
    tail: tuple[str, ...] = ()

    @property
    def networks(self) -> tuple[NetworkBlock, ...]:
        """The networks in file order."""
        return tuple(item for item in self.items if isinstance(item, NetworkBlock))


def to_python(value: Value) -> object:
    """The value as Python tuples, lists and scalars; a call stays a call."""
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, SequenceLiteral):
        items = [to_python(item.value) for item in value.items]
        return tuple(items) if value.bracket == "(" else items
    return value
