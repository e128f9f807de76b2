"""Why a text is not YAML: the parser's complaints in plain words, at the place where something can be done about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ruamel.yaml.error import YAMLError

from neural.core.diagnostics import Label, Source, Where

_TAB = re.compile(r" *\t")
_KEY = re.compile(r"[ \w.-]+")


class Unreadable(Exception):
    """A text that cannot be read: what is wrong, where, and a way out."""

    def __init__(self, message: str, where: Where, help_: str | None = None, labels: tuple[Label, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.where, self.help, self.labels = message, where, help_, labels


@dataclass(frozen=True, slots=True)
class _Complaint:
    sign: str
    """A piece of what the parser says."""
    message: str
    help: str | None = None
    at: Literal["here", "begin", "line"] = "here"
    """Where to point: where the parser stopped, where the thing began, or the whole of that line."""


_PROBLEMS = (
    _Complaint("end of stream", "this quote is not closed", at="begin"),
    _Complaint("document separator", "this quote is not closed", at="begin"),
    _Complaint("mapping values are not", "no `:` can stand here", "a text that has `: ` in it is written in quotes"),
    _Complaint("expected ':'", "a `:` is missing in this line", "write `key: value`", at="line"),
    _Complaint("cannot start any token", "`{letter}` cannot begin a value", "put the value in quotes"),
    _Complaint("mapping keys are not", "no `?` can stand here", "a text that begins with `? ` is written in quotes"),
    _Complaint("document start", "this does not belong to what stands before it"),
    _Complaint("sequence entries are not", "no `-` can stand here", "items of a list begin on lines of their own"),
    _Complaint("unknown escape", "`\\{letter}` is no escape", "single quotes take a text as it stands"),
    _Complaint("expected escape sequence", "this escape wants more digits"),
    _Complaint("expected the node content", "a value is missing before this"),
)
_CONTEXTS = (
    _Complaint("flow sequence", "a `,` or `]` is missing before this"),
    _Complaint("flow mapping", "a `,` or `}}` is missing before this"),
    _Complaint("block collection", "this belongs to no list", "items of one list have the same indentation"),
    _Complaint("block mapping", "this line does not fit the lines above it", "keys of a section are indented alike"),
    _Complaint("block scalar", "this cannot stand behind `|` or `>`"),
    _Complaint("alias", "a name must follow `*`"),
    _Complaint("anchor", "a name must follow `&`", "a text that begins with `&` is written in quotes"),
    _Complaint("tag", "tags such as `!!str` have no meaning here", at="begin"),
    _Complaint("directive", "lines that begin with `%` have no meaning here", at="begin"),
)


def translated(error: YAMLError, source: Source, start: int) -> Unreadable:
    """The complaint about the text from `start` on."""
    context, problem = (getattr(error, name, None) or "" for name in ("context", "problem"))
    marks = [getattr(error, name, None) for name in ("context_mark", "problem_mark")]
    began, here = (min(start + mark.index, len(source.text)) if mark else None for mark in marks)
    here = here if here is not None else began or start
    line = source.text.rfind("\n", 0, here) + 1
    if tab := _TAB.match(source.text, line):
        where = Where(tab.end() - 1, tab.end())
        return Unreadable("this line is indented by a tab", where, "YAML wants spaces at the beginning of a line")
    if problem.startswith("mapping values") and line > start and _KEY.fullmatch(source.text, line, here):
        message = "this line goes on with the text above, so no `:` can stand here"
        way_out = "is a `:` missing above, or is this line indented too far?"
        return Unreadable(message, Where(here, here + 1), way_out)
    found = next((one for one in _PROBLEMS if one.sign in problem), None)
    found = found or next((one for one in _CONTEXTS if one.sign in context), None)
    if found is None:
        return Unreadable("this cannot be read as YAML", Where(here, here + 1))
    place = here if found.at == "here" or began is None else began
    end = source.text.find("\n", place) if found.at == "line" else place + 1
    opened = began is not None and found.at == "here" and "flow" in found.sign
    labels = (Label(Where(began, began + 1), "opened here"),) if opened and began is not None else ()
    message = found.message.format(letter=source.text[here : here + 1])
    return Unreadable(message, Where(place, end if end > place else len(source.text)), found.help, labels)
