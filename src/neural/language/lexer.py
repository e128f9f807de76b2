"""Text of a `.neural` program → tokens.

Line breaks and indentation have no meaning; comments belong to the next token.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple

from neural.core.diagnostics import DiagnosticCollector, Fix, SourceSpan

MAX_NUMBER_LENGTH = 40
"""Characters; a longer number is an error."""
MAX_STRING_LENGTH = 9_999
"""Characters; a longer string counts as unclosed."""
MAX_TOKENS = 50_000
"""A longer program is an error, because reading it takes seconds. About three thousand layers."""

# Besides what the language has, tokens of other languages are recognized, for one clear error each:
# `slashes` is a comment of C, `path` a path without quotes, `curly` a string in typographic quotes,
# and a name may have dots, as in `nn.Linear`. `letters` are letters directly behind a number, an
# error. `unclosed` is a string without a closing quote, `mark` is punctuation, `junk` any character
# that has no meaning.
_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]+)
  | (?P<comment>\#[^\n]*)
  | (?P<slashes>(?<![\w.])//[^\n]*)
  | (?P<path>(?![\d+-])[\w.~-]{0,255}(?:/[\w.-]{1,255})+)
  | (?P<number>[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?P<letters>\w*))
  | (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
  | (?P<string>"(?:[^"\\\n]|\\.){0,LONGEST}"|'(?:[^'\\\n]|\\.){0,LONGEST}')
  | (?P<curly>[“”„‘’][^“”„‘’"'\\\n]{0,LONGEST}[“”„‘’])
  | (?P<unclosed>["'][^\n]*)
  | (?P<mark>[{}()\[\],:=*])
  | (?P<junk>[^\s\w{}()\[\],:=*"'\#]+|.)
    """.replace("LONGEST", str(MAX_STRING_LENGTH)),
    re.VERBOSE,
)
_INTEGER = re.compile(r"[+-]?\d+")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Comment(NamedTuple):
    """A comment."""

    text: str
    """From `#` on."""
    is_own_line: bool
    """Whether nothing but the comment is on its line."""
    after_blank_line: bool


class Token(NamedTuple):
    """A token. `kind` is "name", "number", "string", "end", or the punctuation itself."""

    kind: str
    text: str
    value: int | float | str | None
    span: SourceSpan
    comments: tuple[Comment, ...]
    is_first_on_line: bool
    """First token of its line."""
    after_blank_line: bool
    """A blank line directly precedes the token (after its comments)."""
    after_error: bool
    """Invalid characters directly precede the token, and were reported."""


def tokenize(text: str, diagnostics: DiagnosticCollector) -> list[Token]:
    """All tokens, ending with one of kind "end". Errors are reported and skipped."""
    tokens: list[Token] = []
    comments: list[Comment] = []
    # `newlines` counts line breaks since the last token or comment: 1 makes the first token of the
    # file the first of its line. `at_start` is true before the first token or comment.
    newlines, at_start, after_error = 1, True, False
    position = bracket_depth = 0
    while position < len(text) and not diagnostics.is_full:
        match = _TOKEN.match(text, position)
        assert match is not None  # `junk` matches everything else
        kind, lexeme = match.lastgroup or "junk", match.group()
        start, position = match.span()
        if kind == "space":
            newlines += lexeme.count("\n")
            continue
        if kind == "slashes":
            slashes = SourceSpan(start, start + 2)
            diagnostics.add(
                "E0101",
                "`//` means nothing in a program",
                slashes,
                helps=["`#` begins a comment"],
                fix=Fix(slashes, "#"),
            )
            kind, lexeme = "comment", f"#{lexeme[2:]}"
        if kind == "comment":
            comments.append(
                Comment(_normalize_comment(lexeme), newlines > 0, newlines > 1 and not at_start)
            )
            newlines, at_start = 0, False
            continue
        span = SourceSpan(start, position)
        if len(tokens) >= MAX_TOKENS:
            diagnostics.add(
                "E0107", f"this program has more than {MAX_TOKENS:,} words and marks", span
            )
            return [_make_end_token(text, [], 0)]
        value: int | float | str | None = None
        if kind == "mark":
            kind = lexeme
            if lexeme in "([":
                bracket_depth += 1
            elif lexeme in ")]":
                bracket_depth = max(0, bracket_depth - 1)
        elif kind == "string":
            value = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), lexeme[1:-1])
        elif kind == "curly":
            kind, value = "string", lexeme[1:-1]
            diagnostics.add(
                "E0101",
                f"`{lexeme[0]}` is no quotation mark of a program",
                span,
                helps=[f'write `"{value[:40]}"`'],
                fix=Fix(span, f'"{value}"'),
            )
        elif kind in ("number", "letters"):  # `letters` is the group that ends a number
            kind, value = "number", _parse_number(lexeme, match["letters"], span, diagnostics)
        elif kind == "unclosed":
            kind = "string"
            string_text = _cut_unclosed_string(lexeme, in_brackets=bracket_depth > 0)
            value, position = string_text[1:].strip(), start + len(string_text)
            span = SourceSpan(start, position)
            previous = tokens[-1] if tokens else None
            # a quote directly behind a word: the opening quote is missing, as in `relu"`
            if (
                not value
                and previous is not None
                and previous.kind == "name"
                and previous.span.end == start
            ):
                _report_quote("opened", "begin", lexeme[0], previous.span, diagnostics)
                tokens[-1] = previous._replace(kind="string", value=previous.text)
                continue
            _report_quote("closed", "end", lexeme[0], span, diagnostics)
        elif kind == "junk":
            shown = (
                f"`{lexeme}`" if len(lexeme) <= 12 and lexeme.isprintable() else "these characters"
            )
            verb = "means" if shown != "these characters" else "mean"
            # A semicolon behind a line, or the bullet of a YAML list before it.
            is_separator = set(lexeme) == {";"} or (lexeme == "-" and newlines > 0)
            diagnostics.add(
                "E0101",
                f"{shown} {verb} nothing in a program",
                span,
                helps=["leave it out" if is_separator else "`#` begins a comment"],
                fix=Fix(span, "") if is_separator else None,
            )
            after_error = True
            continue
        after_blank_line = newlines > 1 and not at_start
        tokens.append(
            Token(
                kind,
                lexeme,
                value,
                span,
                tuple(comments),
                is_first_on_line=newlines > 0,
                after_blank_line=after_blank_line,
                after_error=after_error,
            )
        )
        comments, newlines, at_start, after_error = [], 0, False, False
    return [*tokens, _make_end_token(text, comments, newlines)]


def _make_end_token(text: str, comments: list[Comment], newlines: int) -> Token:
    """The last token; `newlines` is the number of line breaks before it."""
    return Token(
        "end",
        "",
        None,
        SourceSpan(len(text), len(text)),
        tuple(comments),
        is_first_on_line=True,
        after_blank_line=newlines > 1,
        after_error=False,
    )


def _normalize_comment(comment: str) -> str:
    """The comment with a space after `#`, except for `##`, `#!` and `#:`."""
    text = comment[1:].rstrip()
    return f"# {text}" if text and text[0] not in " #!:" else f"#{text}"


def _cut_unclosed_string(text: str, in_brackets: bool) -> str:
    """The text up to the likely end of an unclosed string: in brackets, a bracket or comma."""
    return text[0] + re.split(r"[,)\]#}]" if in_brackets else "#", text[1:], maxsplit=1)[0].rstrip()


def _report_quote(
    missing: str, verb: str, quote: str, span: SourceSpan, diagnostics: DiagnosticCollector
) -> None:
    """Report a string without its opening or closing `quote`.

    Words of the message: `missing` is "opened" or "closed", `verb` "begin" or "end".
    """
    quote_span = SourceSpan(span.start, span.start + 1)
    missing_at = span.start if missing == "opened" else span.end
    diagnostics.add(
        "E0103",
        f"this string is not {missing}",
        quote_span,
        helps=[f"{verb} it with `{quote}`"],
        fix=Fix(SourceSpan(missing_at, missing_at), quote),
    )


def _parse_number(
    text: str, letters: str, span: SourceSpan, diagnostics: DiagnosticCollector
) -> int | float:
    """The number; 1 after an error. `letters` are those directly behind the digits."""
    digits = text.replace("_", "")
    if not letters and len(digits) <= MAX_NUMBER_LENGTH:
        value = int(digits) if _INTEGER.fullmatch(digits) else float(digits)
        if isfinite(value):
            return value
    shown = text if len(text) <= MAX_NUMBER_LENGTH else f"{text[:12]}…"
    diagnostics.add(
        "E0108",
        f"`{shown}` is not a number",
        span,
        helps=["numbers look like `512`, `10_000`, `0.1` or `2e-5`"],
    )
    return 1
