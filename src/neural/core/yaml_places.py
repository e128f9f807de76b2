"""YAML 1.2 → values that know where they stand: the first stage of reading settings.

    read(Source("small.yaml", "training: {seed: 3}"), findings)

ruamel.yaml scans and parses. The tree is our own: a message wants the place of every key and value, a key that stands
twice must not disappear, and a file may say nothing but null, true and false, numbers, texts, lists and mappings. Tags
are refused, so no file can name a class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml import events as of
from ruamel.yaml.error import YAMLError

from neural.core.diagnostics import Findings, Label, Source, Where
from neural.core.yaml_complaints import Unreadable, translated

LARGEST = 1_000_000
"""Characters, as for programs, which an experiment may hold as a text."""
DEEPEST = 32
MOST = 10_000
"""Values, those that an alias repeats counted each time: a few lines of aliases can stand for billions."""
LONGEST_NUMBER = 400
"""Digits; no float has more, and Python refuses to read the longest ones."""

_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_NAMED: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False, ".nan": float("nan")}
_NAMED |= {sign + ".inf": float(sign + "inf") for sign in ("", "+", "-")}


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value with its place: None, bool, int, float, str, a list of nodes, or entries by key."""

    source: Source
    where: Where
    value: Any
    quoted: bool = False
    block: bool = False
    """Spread over lines, so that there is no one stretch of text to underline."""
    added: bool = False
    """Made by the path of a change: its keys join those that are there, where others replace them."""
    size: int = 1

    @property
    def written(self) -> str:
        """As the text has it, if that is short."""
        if self.block or self.value == {} or self.value == []:
            return "a list" if isinstance(self.value, list) else "keys with values" if self.value else "nothing"
        return short(self.source.text[self.where.start : self.where.end]) or "nothing"

    @property
    def data(self) -> Any:
        """The value without places."""
        if isinstance(self.value, list):
            return [one.data for one in self.value]
        if isinstance(self.value, dict):
            return {name: entry.node.data for name, entry in self.value.items()}
        return self.value


@dataclass(frozen=True, slots=True)
class Entry:
    """A key, as it was written, and what it leads to."""

    key: Node
    node: Node

    @property
    def place(self) -> Node:
        """What to underline where the value is wrong."""
        return self.key if self.node.block or self.node.where.start == self.node.where.end else self.node


def short(text: str) -> str:
    """The first line of a text, cut where it is long."""
    first = text.partition("\n")[0].rstrip()
    return first if len(first) <= 40 and first == text.rstrip() else f"{first[:40]}…"


def plain(text: str) -> Any:
    """What a text without quotes stands for."""
    if len(text) > LONGEST_NUMBER:
        return text
    if text.lower() in _NAMED and text in (text.lower(), text.upper(), text.capitalize(), ".NaN"):
        return _NAMED[text.lower()]
    if _WHOLE.fullmatch(text):
        based = text[:2] in ("0o", "0x")
        return int(text, 0) if based else int(text.replace("_", ""))
    return float(text.replace("_", "")) if _REAL.fullmatch(text) else text


def read(source: Source, findings: Findings, *, start: int = 0) -> Node | None:
    """The value that the text spells from `start` on; None where it cannot be read."""
    try:
        return _Tree(source, findings, start).document()
    except Unreadable as error:
        findings.say("E0805", error.message, error.where, labels=error.labels, helps=[error.help])
        return None


class _Tree:
    """Builds the nodes from the parser's events."""

    def __init__(self, source: Source, findings: Findings, start: int) -> None:
        self.source, self.findings, self.start = source, findings, start
        self.anchors: dict[str, Node | None] = {}
        self.seen = 0
        if len(source.text) > LARGEST:
            big = f"this has {len(source.text):,} characters, and {LARGEST:,} is the most"
            raise Unreadable(big, Where(0, 0), "an experiment is a page or two of YAML; is this the right file?")
        if odd := _NOT_TEXT.search(source.text):
            code = f"U+{ord(odd[0]):04X}"
            raise Unreadable(f"this is not a text: it holds the character {code}", Where(odd.start(), odd.end()))
        self.events = self.parsed()

    def parsed(self) -> Iterator[of.Event]:
        try:
            yield from YAML(typ="safe", pure=True).parse(self.source.text[self.start :])
        except YAMLError as error:
            raise translated(error, self.source, self.start) from None
        except (ValueError, OverflowError):   # "\UFFFFFFFF" is beyond the last character there is
            escape = re.compile(r"\\U(?!0010|000)\w{0,8}").search(self.source.text, self.start)
            where = Where(*escape.span()) if escape else Where(self.start, self.start)
            raise Unreadable("this escape stands for no character", where) from None

    def document(self) -> Node:
        root = None
        for event in self.events:
            if isinstance(event, of.DocumentStartEvent):
                if root is not None:
                    raise Unreadable("a second document begins here", self.place(event), "one file, one document")
                root = self.node(next(self.events), 1)
        return root or Node(self.source, Where(self.start, self.start), None)

    def place(self, first: Any, last: Any = None) -> Where:
        return Where(self.start + first.start_mark.index, self.start + (last or first).end_mark.index)

    def node(self, event: Any, depth: int) -> Node:
        where = self.place(event)
        if isinstance(event, of.AliasEvent):
            return self.alias(event.anchor, where)
        if event.tag is not None:
            raise Unreadable("tags such as `!!str` have no meaning here", where, "take it out; quotes make a text")
        self.seen += 1
        if self.seen > MOST:   # the parser is slow: a megabyte of numbers would take it half a minute
            raise Unreadable(f"more than {MOST:,} values end here", where)
        if depth > DEEPEST:
            raise Unreadable(f"nested more than {DEEPEST} deep", where)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if isinstance(event, of.ScalarEvent):
            made = self.scalar(event, where)
        elif isinstance(event, of.SequenceStartEvent):
            made = self.sequence(event, depth)
        else:
            made = self.mapping(event, depth)
        if made.size > MOST:
            raise Unreadable(f"this stands for more than {MOST:,} values", where)
        if event.anchor is not None:
            self.anchors[event.anchor] = made
        return made

    def scalar(self, event: of.ScalarEvent, where: Where) -> Node:
        if event.style is None:
            return Node(self.source, where, plain(event.value))
        try:   # JSON writes rare characters as two escapes
            text = event.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeError:
            raise Unreadable("an escape in this text stands for no character", where) from None
        return Node(self.source, where, text, quoted=event.style in "'\"")

    def alias(self, name: str, where: Where) -> Node:
        if name not in self.anchors:
            raise Unreadable(f"no `&{short(name)}` stands before this", where)
        meant = self.anchors[name]
        if meant is None:
            raise Unreadable(f"`*{short(name)}` stands inside what it repeats", where)
        return replace(meant, where=where, block=False)

    def sequence(self, event: of.SequenceStartEvent, depth: int) -> Node:
        items: list[Node] = []
        while not isinstance(last := next(self.events), of.SequenceEndEvent):
            items.append(self.node(last, depth + 1))
        return self.collection(event, last, items, items)

    def mapping(self, event: of.MappingStartEvent, depth: int) -> Node:
        entries: dict[str, Entry] = {}
        while not isinstance(last := next(self.events), of.MappingEndEvent):
            key, value = self.node(last, depth + 1), self.node(next(self.events), depth + 1)
            if not isinstance(key.value, str):
                helps = [f'a name that looks like a number takes quotes: `"{key.written}"`' if not key.block else None]
                self.findings.say("E0802", f"a key must be a name, got {key.written}", key.where, helps=helps)
            elif key.value in entries:
                labels = [Label(entries[key.value].key.where, "first here")]
                self.findings.say("E0806", f"`{short(key.value)}` stands here twice", key.where, labels=labels)
            else:
                entries[key.value] = Entry(key, value)
        return self.collection(event, last, entries, [entry.node for entry in entries.values()])

    def collection(self, first: Any, last: Any, value: Any, inside: list[Node]) -> Node:
        where = self.place(first, last if first.flow_style else None)
        size = 1 + sum(one.size for one in inside)
        return Node(self.source, where, value, block=not first.flow_style, size=size)
