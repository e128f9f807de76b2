"""What a program says: the tree that the parser makes, with places and comments, and no meaning yet.

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

from neural.core.diagnostics import Where

Plain = int | float | str | bool | None

SECTIONS = ("input", "layers", "loss", "optimizer", "train")
"""What a network is made of. The parser finds its footing by them; `check` refuses all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comments:
    """The comments that belong to a line: those above it, the one behind it, and whether a blank line came first.

    Each is its text from `#` on; an empty text between those above is a blank line.
    """

    above: tuple[str, ...] = ()
    behind: str = ""
    blank: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A number, string, truth value or None. `text` is how a number was spelt (`2e-5`, `10_000`)."""

    value: Plain
    text: str
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A tuple or a list; its items are nameless arguments."""

    bracket: str
    items: tuple[Argument, ...]
    where: Where
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`Name(…)`. A broken call had a mistake inside: its place is known, its arguments are not to be trusted."""

    name: str
    name_where: Where
    arguments: tuple[Argument, ...]
    where: Where
    tail: tuple[str, ...] = ()
    broken: bool = False


Value = Literal | Group | Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A value with or without a name."""

    name: str | None
    value: Value
    where: Where
    comments: Comments = field(default_factory=Comments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A call in `layers:`, perhaps `* N`."""

    call: Call
    copies: Literal | None
    where: Where
    comments: Comments = field(default_factory=Comments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`name: value`, `layers:` with its layers, or `name { … }` with its pairs (sections again)."""

    name: str
    name_where: Where
    body: Value | tuple[Layer, ...] | tuple[Section, ...]
    block: bool
    where: Where
    comments: Comments = field(default_factory=Comments)
    tail: tuple[str, ...] = ()
    broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`network Name { … }`."""

    name: str
    name_where: Where
    sections: tuple[Section, ...]
    where: Where
    comments: Comments = field(default_factory=Comments)
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A whole file."""

    items: tuple[Block | Section | Layer, ...]
    tail: tuple[str, ...] = ()

    @property
    def networks(self) -> tuple[Block, ...]:
        """The networks in the order in which they stand."""
        return tuple(item for item in self.items if isinstance(item, Block))


def plain(value: Value) -> object:
    """The value as Python has it: tuples, lists and scalars; a call stays a call."""
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, Group):
        items = [plain(item.value) for item in value.items]
        return tuple(items) if value.bracket == "(" else items
    return value
