"""Text → what opens and closes in it: networks, sections, calls, each with what is given inside.

The parser reads what is right and says what is wrong; this reads what is being written. It works on tokens alone, so
it knows that `Dense(10, activation=` is inside a call whose second argument is called `activation`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from neural.core.diagnostics import Findings, Where
from neural.language.lexer import Token, tokenize
from neural.language.parser import LARGEST
from neural.language.syntax import SECTIONS

Kind = Literal["file", "network", "section", "block", "call", "group"]
BRACKETS = ("call", "group")


@dataclass(slots=True)
class Given:
    """An argument: its name if it has one, and the first token of its value."""

    start: int
    name: Token | None = None
    value: Token | None = None


@dataclass(slots=True, eq=False)
class Part:
    """Something that opens and closes."""

    kind: Kind
    name: str
    where: Where
    """Of its name."""
    start: int
    """Behind what opens it."""
    outer: Part | None = None
    end: int = 0
    """Before what closes it."""
    inside: list[Part] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    """Of a call."""

    def at(self, offset: int) -> Part:
        """The innermost part around a place."""
        for one in self.inside:
            if one.start <= offset <= one.end:
                return one.at(offset)
        return self

    def argument(self, offset: int) -> tuple[int, Given] | None:
        """The argument around a place, with its number."""
        before = [(number, one) for number, one in enumerate(self.given) if one.start <= offset]
        return before[-1] if before else None


@dataclass(frozen=True, slots=True)
class Outline:
    """A text's tokens and parts."""

    text: str
    tokens: list[Token]
    file: Part

    def token(self, offset: int) -> Token | None:
        """The word that a place is in or right behind, else what it is right before."""
        touching = [one for one in self.tokens if one.where.start <= offset <= one.where.end and one.kind != "end"]
        words = [one for one in touching if one.kind in ("name", "string", "number")]
        return next(iter(words or touching[::-1]), None)

    def before(self, offset: int) -> Token | None:
        """The last token that has ended there."""
        return next((one for one in self.tokens[-2::-1] if one.where.end <= offset), None)

    def comment(self, offset: int) -> bool:
        """Whether the place is in a comment."""
        before = self.before(offset)
        inside = any(one.where.start < offset < one.where.end for one in self.tokens)
        return not inside and "#" in self.text[before.where.end if before else 0 : offset].rpartition("\n")[2]


def outline(text: str) -> Outline:
    """Everything that opens in a text; what is too long for a program has nothing in it."""
    tokens = tokenize(text if len(text) <= LARGEST else "", Findings())
    return Outline(text, tokens, _Outliner(tokens, len(text)).file)


class _Outliner:
    def __init__(self, tokens: list[Token], length: int) -> None:
        self.tokens = tokens
        self.file = self.part = Part("file", "", Where(0, 0), 0)
        for index, token in enumerate(tokens[:-1]):
            self.read(index, token)
        while self.part is not self.file:
            self.close(length)
        self.file.end = length

    def kind(self, index: int) -> str:
        return self.tokens[index].kind if 0 <= index < len(self.tokens) else "end"

    def read(self, index: int, token: Token) -> None:
        behind = self.kind(index + 1)
        section = token.kind == "name" and behind in (":", "{") and (self.part.kind not in BRACKETS or token.first)
        network = section and behind == "{" and self.kind(index - 1) == "name" and not token.first
        if self.part.kind in BRACKETS and (
            token.kind == "}" or (section and token.text in SECTIONS) or self.forgotten(index, token)
        ):
            while self.part.kind in BRACKETS:
                self.close(token.where.start)
        if self.part.kind in BRACKETS:
            self.inside(index, token)
        elif network:
            self.leave(token, "network")
            self.open("network", token, self.tokens[index + 1])
        elif section:
            self.leave(token, "section")
            self.open("block" if behind == "{" else "section", token, self.tokens[index + 1])
        elif token.kind == "}":
            self.leave(token, "section")
            if self.part is not self.file:
                self.close(token.where.start)
        elif token.kind in ("(", "["):
            self.bracket(index, token)

    def forgotten(self, index: int, token: Token) -> bool:
        """Whether a call begins on a line of its own where a comma or a bracket should stand."""
        return token.first and self.kind(index + 1) == "(" and self.kind(index - 1) not in (",", "(", "[", "=")

    def inside(self, index: int, token: Token) -> None:
        """Between brackets."""
        if token.kind in (")", "]"):
            self.close(token.where.start)
        elif token.kind == ",":
            self.part.given.append(Given(token.where.end))
        elif token.kind in ("(", "["):
            self.bracket(index, token)
        elif token.kind == "name" and self.kind(index + 1) == "=":
            self.part.given[-1].name = token
        elif token.kind in ("name", "string", "number") and self.part.given[-1].value is None:
            self.part.given[-1].value = token

    def bracket(self, index: int, token: Token) -> None:
        called = token.kind == "(" and self.kind(index - 1) == "name"
        self.open("call" if called else "group", self.tokens[index - 1] if called else token, token)
        self.part.given.append(Given(token.where.end))

    def leave(self, token: Token, kind: Kind) -> None:
        """Close what cannot hold a section, or a network."""
        while self.part.kind == "section" or (kind == "network" and self.part is not self.file):
            self.close(token.where.start)

    def open(self, kind: Kind, name: Token, mark: Token) -> None:
        made = Part(kind, name.text if name is not mark else "", name.where, mark.where.end, self.part)
        self.part.inside.append(made)
        self.part = made

    def close(self, end: int) -> None:
        self.part.end = max(end, self.part.start)
        self.part = self.part.outer or self.file
