"""Cursor over the tokens of a `.neural` program, the base class of the parser (parser.py).

It has lookahead, comments, syntax errors and bracket counts. A section of a program is
`name: value` or `name { … }`. A stray comment stands in the middle of a value or name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from neural.core.diagnostics import DiagnosticCollector, Fix, SourceSpan
from neural.language.foreign.training_names import SECTIONS
from neural.language.lexer import Token
from neural.language.syntax import SECTION_NAMES, Comments

CLOSING_BRACKETS = {"(": ")", "[": "]", "{": "}"}

_NO_COMMENTS, _BLANK_LINE = Comments(), Comments(blank=True)


class RecoverySignal(Exception):
    """Raised to unwind to the nearest recovery point of the parser. Not an error."""


class TokenCursor:
    """Position in a token list. Attaches comments to the line they belong to.

    Tokens hold the comments before them; a method that takes comments removes them from the token.
    """

    def __init__(self, tokens: list[Token], diagnostics: DiagnosticCollector) -> None:
        self.tokens, self.diagnostics = tokens, diagnostics
        self.index = 0
        self.stray_comments: list[str] = []
        """Stray comments that were read; they are added above the next line that is completed."""

    @property
    def token(self) -> Token:
        """The current token."""
        return self.tokens[self.index]

    def peek(self, ahead: int = 1) -> Token:
        """The token `ahead` places after the current one; past the end, the end token."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Consume the current token; its comments become stray unless they were taken before.

        When the error limit is reached, skips to the end token.
        """
        token = self.token
        if token.comments:
            self.stray_comments += [comment.text for comment in token.comments]
            self.tokens[self.index] = token._replace(comments=())
        if token.kind != "end":
            self.index = self.index + 1 if not self.diagnostics.is_full else len(self.tokens) - 1
        return token

    def skip_to_next_line(self) -> None:
        """Skip to the first token of a line, or to a closing brace."""
        while not self.token.is_first_on_line and self.token.kind != "}":
            self.advance()

    # --- comments ---------------------------------------------------------------------------------

    def take_leading_comments(self) -> Comments:
        """Take the comments above the line that starts here."""
        token = self.token
        if not token.comments:
            return _BLANK_LINE if token.after_blank_line else _NO_COMMENTS
        return Comments(above=self.take_comments_above(), blank=token.comments[0].after_blank_line)

    def take_comments_above(self) -> tuple[str, ...]:
        """Take the comments before the current token; an empty string is a blank line."""
        token = self.token
        lines: list[str] = []
        for comment in token.comments:
            lines += ["", comment.text] if comment.after_blank_line and lines else [comment.text]
        if (
            lines
            and token.after_blank_line
            and token.kind not in ("end", *CLOSING_BRACKETS.values())
        ):
            lines.append("")
        if lines:
            self.tokens[self.index] = token._replace(comments=())
        return tuple(lines)

    def add_inner_comments(self, comments: Comments) -> Comments:
        """Add comments between a name and its value to those above the line."""
        if not self.stray_comments and not self.token.comments:
            return comments
        strays, self.stray_comments = self.stray_comments, []
        return replace(comments, above=(*comments.above, *strays, *self.take_comments_above()))

    def take_trailing_comment(self) -> str:
        """Take the comment at the end of the line that just ended."""
        token = self.token
        if not token.comments or token.comments[0].is_own_line:
            return ""
        self.tokens[self.index] = token._replace(comments=token.comments[1:])
        return token.comments[0].text

    def add_trailing_comment(self, comments: Comments) -> Comments:
        """Add the comment behind the line that just ended, and stray comments above it."""
        if not self.stray_comments and (comments.behind or not self.token.comments):
            return comments
        behind = comments.behind or self.take_trailing_comment()
        above = (*comments.above, *self.stray_comments)
        self.stray_comments = []
        return replace(comments, above=above, behind=behind)

    def take_tail_comments(self) -> tuple[str, ...]:
        """Take the comments before a closing bracket or the end of the file."""
        strays, self.stray_comments = self.stray_comments, []
        blank = ("",) if self.token.comments and self.token.comments[0].after_blank_line else ()
        return (*strays, *blank, *self.take_comments_above())

    # --- errors -----------------------------------------------------------------------------------

    def report_syntax_error(
        self, message: str, span: SourceSpan, *helps: str, fix: Fix | None = None
    ) -> None:
        """Report E0105: something else was expected."""
        self.diagnostics.add("E0105", message, span, helps=helps, fix=fix)

    @property
    def token_description(self) -> str:
        """The current token for messages."""
        return "the end of the file" if self.token.kind == "end" else f"`{self.token.text[:30]}`"

    def raise_unexpected(self, message: str, helps: Iterable[str] = ()) -> None:
        """Report that something else was expected here, and unwind to the next recovery point."""
        if not self.token.after_error:
            self.report_syntax_error(
                f"{message}, found {self.token_description}", self.token.span, *helps
            )
        raise RecoverySignal

    # --- lookahead --------------------------------------------------------------------------------

    def begins_network(self) -> bool:
        """Whether `network Name` is next, or two words and `{`, with `network` misspelt."""
        token, second = self.token, self.peek()
        if token.kind != "name":
            return False
        if token.text == "network":
            return second.kind in ("name", "{", "string", "number", "end")
        return (
            token.is_first_on_line
            and second.kind == "name"
            and not second.is_first_on_line
            and self.peek(2).kind == "{"
        )

    def begins_section(self) -> bool:
        """Whether a section is next: a name with `:` or `{`, or a known name that starts a line."""
        if self.token.kind != "name" or self.begins_network():
            return False
        if self.peek().kind in (":", "{"):
            return True
        if not self.token.is_first_on_line:
            return False
        if self.token.text in SECTION_NAMES:
            return True
        # `epochs = 10` is a section with a wrong mark, `x = Dense(5)` a layer with a name
        if self.peek().kind != "=":
            return False
        is_call = self.peek(2).kind == "name" and self.peek(3).kind == "("
        return self.token.text in SECTIONS or not is_call

    def begins_known_section(self) -> bool:
        """Whether one of SECTION_NAMES with `:` or `{` is next."""
        return (
            self.token.kind == "name"
            and self.token.text in SECTION_NAMES
            and self.peek().kind in (":", "{")
        )

    def begins_call(self) -> bool:
        """Whether a name with `(` is next."""
        return self.token.kind == "name" and self.peek().kind == "("

    # --- bracket counts ---------------------------------------------------------------------------

    def count_braces_left(self) -> int:
        """How many more `}` than `{` follow in this network."""
        return self._remaining_closers[0][self.index]

    def count_brackets_left(self) -> int:
        """How many more `)` and `]` than `(` and `[` follow in this section."""
        return self._remaining_closers[1][self.index]

    @cached_property
    def _remaining_closers(self) -> tuple[list[int], list[int]]:
        """For every token, the two counts from there on: of braces, and of other brackets.

        Computed once, from the end. Brace counts restart at a network, bracket counts at a section.
        """
        braces, brackets = [0] * len(self.tokens), [0] * len(self.tokens)
        saved_index = self.index
        for index in range(len(self.tokens) - 2, -1, -1):
            kind = self.tokens[index].kind
            braces[index] = braces[index + 1] + (kind == "}") - (kind == "{")
            brackets[index] = brackets[index + 1] + (kind in (")", "]")) - (kind in ("(", "["))
            if kind == "name":
                self.index = index  # the `begins_…` methods look at the current token
                braces[index] = 0 if self.begins_network() else braces[index]
                brackets[index] = 0 if self.begins_known_section() else brackets[index]
            elif kind in ("{", "}"):
                brackets[index] = 0
        self.index = saved_index
        return braces, brackets
