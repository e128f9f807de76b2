"""Text → tokens. Newlines and indentation mean nothing; comments are kept on the token that follows them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from neural.core.diagnostics import Findings, Where

LONGEST_NUMBER = 40
MOST_TOKENS = 100_000
"""About seven thousand layers written out; a program of more is a mistake, and reading it would take seconds."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\f\v\ufeff]+)
  | (?P<newline>\n)
  | (?P<comment>\#[^\n]*)
  | (?P<number>[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?P<letters>\w*))
  | (?P<name>[^\W\d]\w*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<open>["'][^\n]*)
  | (?P<mark>[{}()\[\],:=*])
  | (?P<junk>[^\s\w{}()\[\],:=*"'\#]+|.)
    """,
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment: its words, whether it has a line of its own, whether a blank line stands before it."""

    text: str
    own_line: bool
    blank: bool


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is "name", "number", "string", "end", or the mark itself."""

    kind: str
    text: str
    value: int | float | str | None
    where: Where
    remarks: tuple[Remark, ...]
    first: bool
    """First on its line."""
    blank: bool
    """A blank line stands right before it (after its remarks)."""


def tokenize(text: str, findings: Findings) -> list[Token]:
    """All tokens, ending with one of kind "end". Mistakes are said and stepped over."""
    tokens: list[Token] = []
    remarks: list[Remark] = []
    newlines = 2   # the file's start is like a fresh line after a blank one; see `blank` below
    at_start = True
    position = 0
    while position < len(text):
        if len(tokens) >= MOST_TOKENS:
            findings.say("E0107", f"this program has more than {MOST_TOKENS:,} words and marks", tokens[-1].where)
            break
        match = _TOKEN.match(text, position)
        assert match is not None   # `junk` takes whatever nothing else does
        where, kind, found = Where(match.start(), match.end()), match.lastgroup or "junk", match.group()
        position = match.end()
        kind = "number" if kind == "letters" else kind
        if kind == "newline":
            newlines += 1
        elif kind == "comment":
            remarks.append(Remark(found[1:].strip(), newlines > 0, newlines > 1 and not at_start))
            newlines, at_start = 0, False
        elif kind != "space":
            token = _token(kind, found, match, where, findings)
            if token is not None:
                made, value = token
                blank = newlines > 1 and not at_start
                tokens.append(Token(made, found, value, where, tuple(remarks), newlines > 0, blank))
                remarks, newlines, at_start = [], 0, False
    end = Where(len(text), len(text))
    tokens.append(Token("end", "", None, end, tuple(remarks), True, newlines > 1))
    return tokens


def _token(
    kind: str, found: str, match: re.Match[str], where: Where, findings: Findings
) -> tuple[str, int | float | str | None] | None:
    """Kind and value of what was found, or None where it is a mistake to step over."""
    if kind == "name":
        return "name", found
    if kind == "mark":
        return found, None
    if kind == "string":
        return "string", re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), found[1:-1])
    if kind == "number":
        return "number", _number(found, match["letters"], where, findings)
    if kind == "open":
        findings.say(
            "E0103", "this string is not closed", Where(where.start, where.start + 1), helps=[f"end it with `{found[0]}`"]
        )
        return "string", re.split(r"[,)\]#]", found[1:])[0].strip()
    shown = found if len(found) <= 12 and found.isprintable() else "these characters"
    shown = f"`{found}`" if shown == found else shown
    findings.say("E0101", f"{shown} means nothing in a program", where, helps=["`#` begins a comment"])
    return None


def _number(found: str, letters: str, where: Where, findings: Findings) -> int | float:
    digits = found.replace("_", "")
    if not letters and len(digits) <= LONGEST_NUMBER:
        try:
            return int(digits) if re.fullmatch(r"[+-]?\d+", digits) else float(digits)
        except ValueError:
            pass
    shown = found if len(found) <= LONGEST_NUMBER else f"{found[:12]}…"
    findings.say(
        "E0108", f"`{shown}` is not a number", where, helps=["numbers look like `512`, `10_000`, `0.1` or `2e-5`"]
    )
    return 1
