"""Text → tokens. Newlines and indentation mean nothing; comments are kept on the token that follows them."""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple

from neural.core.diagnostics import Findings, Where

LONGEST_NUMBER = 40
LONGEST_STRING = 9_999
MOST_TOKENS = 50_000
"""Three thousand layers written out; a program of more is a mistake, and reading it would take seconds."""

_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]+)
  | (?P<comment>\#[^\n]*)
  | (?P<number>[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?P<letters>\w*))
  | (?P<name>[^\W\d]\w*)
  | (?P<string>"(?:[^"\\\n]|\\.){0,LONGEST}"|'(?:[^'\\\n]|\\.){0,LONGEST}')
  | (?P<open>["'][^\n]*)
  | (?P<mark>[{}()\[\],:=*])
  | (?P<junk>[^\s\w{}()\[\],:=*"'\#]+|.)
    """.replace("LONGEST", str(LONGEST_STRING)),
    re.VERBOSE,
)
_WHOLE = re.compile(r"[+-]?\d+")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Remark(NamedTuple):
    """A comment: its text from `#` on, whether it has a line of its own, whether a blank line stands before it."""

    text: str
    own_line: bool
    blank: bool


class Token(NamedTuple):
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
    damaged: bool
    """Something that means nothing stands right before it, and that has been said."""


def tokenize(text: str, findings: Findings) -> list[Token]:
    """All tokens, ending with one of kind "end". Mistakes are said and stepped over."""
    tokens: list[Token] = []
    remarks: list[Remark] = []
    newlines, at_start, damaged = 1, True, False   # the file's start is a fresh line
    position = depth = 0
    while position < len(text) and not findings.full:
        match = _TOKEN.match(text, position)
        assert match is not None   # `junk` takes whatever nothing else does
        kind, found = match.lastgroup or "junk", match.group()
        start, position = match.span()
        if kind == "space":
            newlines += found.count("\n")
            continue
        if kind == "comment":
            remarks.append(Remark(_tidy(found), newlines > 0, newlines > 1 and not at_start))
            newlines, at_start = 0, False
            continue
        where = Where(start, position)
        if len(tokens) >= MOST_TOKENS:
            findings.say("E0107", f"this program has more than {MOST_TOKENS:,} words and marks", where)
            return [_end(text, [], 0)]
        value: int | float | str | None = None
        if kind == "mark":
            kind = found
            depth = depth + 1 if found in "([" else max(0, depth - 1) if found in ")]" else depth
        elif kind == "string":
            value = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), found[1:-1])
        elif kind in ("number", "letters"):
            kind, value = "number", _number(found, match["letters"], where, findings)
        elif kind == "open":
            kind = "string"
            opened = _unclosed(found, depth > 0)
            value, position = opened[1:].strip(), start + len(opened)
            where = Where(start, position)
            before = tokens[-1] if tokens else None
            if not value and before is not None and before.kind == "name" and before.where.end == start:
                _say_quote("opened", "begin", found[0], before.where, findings)
                tokens[-1] = before._replace(kind="string", value=before.text)
                continue
            _say_quote("closed", "end", found[0], where, findings)
        elif kind == "junk":
            shown = f"`{found}`" if len(found) <= 12 and found.isprintable() else "these characters"
            verb = "means" if shown != "these characters" else "mean"
            findings.say("E0101", f"{shown} {verb} nothing in a program", where, helps=["`#` begins a comment"])
            damaged = True
            continue
        blank = newlines > 1 and not at_start
        tokens.append(Token(kind, found, value, where, tuple(remarks), newlines > 0, blank, damaged))
        remarks, newlines, at_start, damaged = [], 0, False, False
    return [*tokens, _end(text, remarks, newlines)]


def _end(text: str, remarks: list[Remark], newlines: int) -> Token:
    return Token("end", "", None, Where(len(text), len(text)), tuple(remarks), True, newlines > 1, False)


def _tidy(comment: str) -> str:
    """A space behind `#`, unless the comment is drawn (`##`, `#!`, `#:`)."""
    words = comment[1:].rstrip()
    return f"# {words}" if words and words[0] not in " #!:" else f"#{words}"


def _unclosed(found: str, in_brackets: bool) -> str:
    """Where an unclosed string was probably meant to end: at a bracket or comma if it stands in brackets."""
    return found[0] + re.split(r"[,)\]#}]" if in_brackets else "#", found[1:], maxsplit=1)[0].rstrip()


def _say_quote(missing: str, do: str, quote: str, where: Where, findings: Findings) -> None:
    place = Where(where.start, where.start + 1)
    findings.say("E0103", f"this string is not {missing}", place, helps=[f"{do} it with `{quote}`"])


def _number(found: str, letters: str, where: Where, findings: Findings) -> int | float:
    digits = found.replace("_", "")
    if not letters and len(digits) <= LONGEST_NUMBER:
        value = int(digits) if _WHOLE.fullmatch(digits) else float(digits)
        if isfinite(value):
            return value
    shown = found if len(found) <= LONGEST_NUMBER else f"{found[:12]}…"
    findings.say(
        "E0108", f"`{shown}` is not a number", where, helps=["numbers look like `512`, `10_000`, `0.1` or `2e-5`"]
    )
    return 1
