"""A place in the tokens: what stands here, whose comments are whose, and how many brackets are still to come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from neural.core.diagnostics import Findings, Fix, Where
from neural.language.lexer import Token
from neural.language.syntax import SECTIONS, Comments

CLOSING = {"(": ")", "[": "]", "{": "}"}

_NONE, _BLANK = Comments(), Comments(blank=True)


class Lost(Exception):
    """What follows cannot be read from here. Not an error: a jump to whoever can find its footing again."""


class Cursor:
    """Walks along the tokens; comments are handed to the line that they belong to."""

    def __init__(self, tokens: list[Token], findings: Findings) -> None:
        self.tokens, self.findings = tokens, findings
        self.at = 0
        self.strays: list[str] = []
        """Comments met where no line of their own can hold them; the next finished line takes them above it."""

    @property
    def token(self) -> Token:
        """The token that stands here."""
        return self.tokens[self.at]

    def peek(self, ahead: int = 1) -> Token:
        """A later token, at most the end."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def step(self) -> Token:
        """Take the token; its comments become strays unless `opening` took them before.

        After more mistakes than anybody reads at once, the next token is the end.
        """
        token = self.token
        if token.remarks:
            self.strays += [remark.text for remark in token.remarks]
            self.tokens[self.at] = token._replace(remarks=())
        if token.kind != "end":
            self.at = self.at + 1 if not self.findings.full else len(self.tokens) - 1
        return token

    def next_line(self) -> None:
        """Go on to the first token of a line, or to a closing brace."""
        while not self.token.first and self.token.kind != "}":
            self.step()

    # --- comments -------------------------------------------------------------------------------------------

    def opening(self) -> Comments:
        """The comments above the line that begins here."""
        token = self.token
        if not token.remarks:
            return _BLANK if token.blank else _NONE
        return Comments(above=self.above(), blank=token.remarks[0].blank)

    def above(self) -> tuple[str, ...]:
        """Take the comments before this token; an empty one stands for a blank line between them."""
        token = self.token
        lines: list[str] = []
        for remark in token.remarks:
            lines += ["", remark.text] if remark.blank and lines else [remark.text]
        if lines and token.blank and token.kind not in ("end", *CLOSING.values()):
            lines.append("")
        if lines:
            self.tokens[self.at] = token._replace(remarks=())
        return tuple(lines)

    def gathered(self, comments: Comments) -> Comments:
        """The same, with all comments that stand between its name and its value above it."""
        if not self.strays and not self.token.remarks:
            return comments
        strays, self.strays = self.strays, []
        return replace(comments, above=(*comments.above, *strays, *self.above()))

    def behind(self) -> str:
        """Take the comment on the line that just ended."""
        token = self.token
        if not token.remarks or token.remarks[0].own_line:
            return ""
        self.tokens[self.at] = token._replace(remarks=token.remarks[1:])
        return token.remarks[0].text

    def closing(self, comments: Comments) -> Comments:
        """The same, with the comment behind the line that just ended, and with what strayed on the way."""
        if not self.strays and (comments.behind or not self.token.remarks):
            return comments
        behind = comments.behind or self.behind()
        above = (*comments.above, *self.strays)
        self.strays = []
        return replace(comments, above=above, behind=behind)

    def tail(self) -> tuple[str, ...]:
        """The comments before a closing bracket or the end."""
        strays, self.strays = self.strays, []
        blank = ("",) if self.token.remarks and self.token.remarks[0].blank else ()
        return (*strays, *blank, *self.above())

    # --- mistakes -------------------------------------------------------------------------------------------

    def say(self, message: str, where: Where, *helps: str, fix: Fix | None = None) -> None:
        """Say that something else was expected."""
        self.findings.say("E0105", message, where, helps=helps, fix=fix)

    @property
    def found(self) -> str:
        """What stands here, in words."""
        return "the end of the file" if self.token.kind == "end" else f"`{self.token.text[:30]}`"

    def unexpected(self, message: str, helps: Iterable[str] = ()) -> None:
        """Say that something else was expected here, and give up this place."""
        if not self.token.damaged:
            self.say(f"{message}, found {self.found}", self.token.where, *helps)
        raise Lost

    # --- where the next thing begins ------------------------------------------------------------------------

    def begins_network(self) -> bool:
        """`network Name`; or two words and a brace on one line, the first of them misspelt."""
        token, second = self.token, self.peek()
        if token.kind != "name":
            return False
        if token.text == "network":
            return second.kind in ("name", "{", "string", "number", "end")
        return token.first and second.kind == "name" and not second.first and self.peek(2).kind == "{"

    def begins_section(self) -> bool:
        """A name with `:` or `{`; or a known one at the start of a line, whatever follows."""
        if self.token.kind != "name" or self.begins_network():
            return False
        return self.peek().kind in (":", "{") or (self.token.first and self.token.text in SECTIONS)

    def begins_known_section(self) -> bool:
        """One of the five, spelt right."""
        return self.token.kind == "name" and self.token.text in SECTIONS and self.peek().kind in (":", "{")

    def begins_call(self) -> bool:
        """A name with `(`."""
        return self.token.kind == "name" and self.peek().kind == "("

    # --- brackets to come -----------------------------------------------------------------------------------

    def braces_left(self, ahead: int = 0) -> int:
        """How many more `}` than `{` follow in this network."""
        return self._left[0][min(self.at + ahead, len(self.tokens) - 1)]

    def brackets_left(self) -> int:
        """How many more `)` and `]` than `(` and `[` follow in this section."""
        return self._left[1][self.at]

    @cached_property
    def _left(self) -> tuple[list[int], list[int]]:
        braces, brackets = [0] * len(self.tokens), [0] * len(self.tokens)
        here = self.at
        for index in range(len(self.tokens) - 2, -1, -1):
            kind = self.tokens[index].kind
            braces[index] = braces[index + 1] + (kind == "}") - (kind == "{")
            brackets[index] = brackets[index + 1] + (kind in (")", "]")) - (kind in ("(", "["))
            if kind == "name":
                self.at = index
                braces[index] = 0 if self.begins_network() else braces[index]
                brackets[index] = 0 if self.begins_known_section() else brackets[index]
            elif kind in ("{", "}"):
                brackets[index] = 0
        self.at = here
        return braces, brackets
