"""Parse YAML 1.2 into a tree whose keys and values have source spans.

    parse_yaml(SourceText("small.yaml", "training: {seed: 3}"), diagnostics)

ruamel.yaml scans and parses. The tree is our own: messages need the span of every key and value, a
duplicate key must not disappear, and only null, booleans, numbers, strings, lists and mappings are
allowed. Tags are refused, so no file can name a class. In YAML, a block collection is a list or
mapping in indented lines, a flow collection one in brackets. `neural explain E0805` explains a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml import events as yaml_events
from ruamel.yaml.error import YAMLError

from neural.core.diagnostics import DiagnosticCollector, Label, SourceSpan, SourceText
from neural.core.errors import NeuralError

_TAB_INDENT = re.compile(r" *\t")
_PLAIN_KEY = re.compile(r"[ \w.-]+")


class YamlSyntaxError(NeuralError):
    """A text that is not valid YAML: message, span and help."""

    def __init__(
        self,
        message: str,
        span: SourceSpan,
        help_: str | None = None,
        labels: tuple[Label, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message, self.span, self.help, self.labels = message, span, help_, labels


@dataclass(frozen=True, slots=True)
class _YamlErrorPattern:
    """An error message of ruamel, and the clearer one that replaces it."""

    pattern: str
    """Substring of ruamel's message."""
    message: str
    """Format string (so `}}` is a brace); `{letter}` is the character where the parser stopped."""
    help: str | None = None
    at: Literal["here", "begin", "line"] = "here"
    """Where to point: where the parser stopped, where the construct began, or that line."""


_PROBLEM_PATTERNS = (
    _YamlErrorPattern("end of stream", "this quote is not closed", at="begin"),
    _YamlErrorPattern("document separator", "this quote is not closed", at="begin"),
    _YamlErrorPattern(
        "mapping values are not",
        "no `:` can stand here",
        "a text that has `: ` in it is written in quotes",
    ),
    _YamlErrorPattern(
        "expected ':'", "a `:` is missing in this line", "write `key: value`", at="line"
    ),
    _YamlErrorPattern(
        "cannot start any token", "`{letter}` cannot begin a value", "put the value in quotes"
    ),
    _YamlErrorPattern(
        "mapping keys are not",
        "no `?` can stand here",
        "a text that begins with `? ` is written in quotes",
    ),
    _YamlErrorPattern("document start", "this does not belong to what stands before it"),
    _YamlErrorPattern(
        "sequence entries are not",
        "no `-` can stand here",
        "items of a list begin on lines of their own",
    ),
    _YamlErrorPattern(
        "unknown escape", "`\\{letter}` is no escape", "single quotes take a text as it stands"
    ),
    _YamlErrorPattern("expected escape sequence", "this escape wants more digits"),
    _YamlErrorPattern("expected the node content", "a value is missing before this"),
)
"""Compared with `problem` of ruamel's error, which says what is wrong."""
_CONTEXT_PATTERNS = (
    _YamlErrorPattern("flow sequence", "a `,` or `]` is missing before this"),
    _YamlErrorPattern("flow mapping", "a `,` or `}}` is missing before this"),
    _YamlErrorPattern(
        "block collection", "this belongs to no list", "items of one list have the same indentation"
    ),
    _YamlErrorPattern(
        "block mapping",
        "this line does not fit the lines above it",
        "keys of a section are indented alike",
    ),
    _YamlErrorPattern("block scalar", "this cannot stand behind `|` or `>`"),
    _YamlErrorPattern("alias", "a name must follow `*`"),
    _YamlErrorPattern(
        "anchor", "a name must follow `&`", "a text that begins with `&` is written in quotes"
    ),
    _YamlErrorPattern("tag", "tags such as `!!str` have no meaning here", at="begin"),
    _YamlErrorPattern("directive", "lines that begin with `%` have no meaning here", at="begin"),
)
"""Compared with `context` of ruamel's error, which says what was being parsed, if `problem` matches
no pattern."""


def translate_yaml_error(error: YAMLError, source: SourceText, start: int) -> YamlSyntaxError:
    """Convert an error of ruamel. The YAML begins at offset `start` of the source text."""
    context, problem = (getattr(error, name, None) or "" for name in ("context", "problem"))
    marks = [getattr(error, name, None) for name in ("context_mark", "problem_mark")]
    construct_start, error_offset = (
        min(start + mark.index, len(source.text)) if mark else None for mark in marks
    )
    error_offset = error_offset if error_offset is not None else construct_start or start
    line_start = source.text.rfind("\n", 0, error_offset) + 1
    if tab := _TAB_INDENT.match(source.text, line_start):
        span = SourceSpan(tab.end() - 1, tab.end())
        return YamlSyntaxError(
            "this line is indented by a tab", span, "YAML wants spaces at the beginning of a line"
        )
    if (
        problem.startswith("mapping values")
        and line_start > start
        and _PLAIN_KEY.fullmatch(source.text, line_start, error_offset)
    ):
        message = "this line goes on with the text above, so no `:` can stand here"
        help_text = "is a `:` missing above, or is this line indented too far?"
        return YamlSyntaxError(message, SourceSpan(error_offset, error_offset + 1), help_text)
    known_error = next(
        (candidate for candidate in _PROBLEM_PATTERNS if candidate.pattern in problem), None
    ) or next((candidate for candidate in _CONTEXT_PATTERNS if candidate.pattern in context), None)
    if known_error is None:
        return YamlSyntaxError(
            "this cannot be read as YAML", SourceSpan(error_offset, error_offset + 1)
        )
    offset = (
        error_offset if known_error.at == "here" or construct_start is None else construct_start
    )
    end = source.text.find("\n", offset) if known_error.at == "line" else offset + 1
    points_to_opening = (
        construct_start is not None and known_error.at == "here" and "flow" in known_error.pattern
    )
    labels = (
        (Label(SourceSpan(construct_start, construct_start + 1), "opened here"),)
        if points_to_opening and construct_start is not None
        else ()
    )
    message = known_error.message.format(letter=source.text[error_offset : error_offset + 1])
    return YamlSyntaxError(
        message,
        SourceSpan(offset, end if end > offset else len(source.text)),
        known_error.help,
        labels,
    )


MAX_CHARACTERS = 1_000_000
"""Longer texts are refused."""
MAX_DEPTH = 32
"""Deepest accepted nesting of lists and mappings."""
MAX_VALUES = 10_000
"""Largest accepted number of values. An alias counts as all values that it repeats: a few lines of
aliases can stand for billions."""
MAX_NUMBER_DIGITS = 400
"""Longer scalars stay text; no float has more digits, and Python limits int parsing."""

# Any character that YAML does not allow.
_INVALID_CHARACTER = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_NAMED_SCALARS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
    ".nan": float("nan"),
}
_NAMED_SCALARS |= {sign + ".inf": float(sign + "inf") for sign in ("", "+", "-")}


@dataclass(frozen=True, slots=True, eq=False)
class YamlNode:
    """A value with its span in the source text."""

    source: SourceText
    span: SourceSpan
    value: Any
    """None, bool, int, float, str, a list of YamlNode, or a dict from key to YamlEntry."""
    is_quoted: bool = False
    is_block: bool = False
    """Spans several lines, so that messages underline the key instead."""
    from_dotted_key: bool = False
    """Created by the dotted key of an override: merged with existing keys, not replacing them."""
    value_count: int = 1
    """Values in this subtree, itself included; an alias counts as what it repeats."""

    @property
    def source_text(self) -> str:
        """The value as written, shortened."""
        if self.is_block or self.value == {} or self.value == []:
            return (
                "a list"
                if isinstance(self.value, list)
                else "keys with values"
                if self.value
                else "nothing"
            )
        return shorten(self.source.text[self.span.start : self.span.end]) or "nothing"

    @property
    def data(self) -> Any:
        """The value as plain Python data, without positions."""
        if isinstance(self.value, list):
            return [node.data for node in self.value]
        if isinstance(self.value, dict):
            return {name: entry.node.data for name, entry in self.value.items()}
        return self.value


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """A key as written, and its value."""

    key: YamlNode
    node: YamlNode

    @property
    def error_node(self) -> YamlNode:
        """The node to underline where the value is wrong."""
        return (
            self.key
            if self.node.is_block or self.node.span.start == self.node.span.end
            else self.node
        )


def shorten(text: str) -> str:
    """The first line of a text, cut after 40 characters."""
    first = text.partition("\n")[0].rstrip()
    return first if len(first) <= 40 and first == text.rstrip() else f"{first[:40]}…"


def parse_scalar(text: str) -> Any:
    """The value of an unquoted scalar."""
    if len(text) > MAX_NUMBER_DIGITS:
        return text
    if text.lower() in _NAMED_SCALARS and text in (
        text.lower(),
        text.upper(),
        text.capitalize(),
        ".NaN",
    ):
        return _NAMED_SCALARS[text.lower()]
    if _INTEGER.fullmatch(text):
        has_base = text[:2] in ("0o", "0x")
        return int(text, 0) if has_base else int(text.replace("_", ""))
    return float(text.replace("_", "")) if _FLOAT.fullmatch(text) else text


def parse_yaml(
    source: SourceText, diagnostics: DiagnosticCollector, *, start: int = 0
) -> YamlNode | None:
    """Parse the text from offset `start` on. After an error, adds a diagnostic, returns None."""
    try:
        return _TreeBuilder(source, diagnostics, start).build_document()
    except YamlSyntaxError as error:
        diagnostics.add("E0805", error.message, error.span, labels=error.labels, helps=[error.help])
        return None


def iter_top_level_keys(text: str) -> Iterator[str]:
    """Keys of the outermost mapping of a YAML text, in order.

    Stops silently at the first syntax error, so it also works for a truncated text.
    """
    depth, node_count = 0, 0  # nodes of the outermost mapping are key, value, key, value, …
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            if depth == 1 and isinstance(event, yaml_events.NodeEvent):
                if node_count % 2 == 0 and isinstance(event, yaml_events.ScalarEvent):
                    yield event.value
                node_count += 1
            if isinstance(event, yaml_events.CollectionStartEvent):
                if depth == 0 and not isinstance(event, yaml_events.MappingStartEvent):
                    return
                depth += 1
            elif isinstance(event, yaml_events.CollectionEndEvent):
                depth -= 1
    except (YAMLError, ValueError, OverflowError):
        return


class _TreeBuilder:
    """Builds nodes from ruamel's parse events.

    `start` is the offset of the YAML in the source: in an override `key=VALUE`, after the `=`.
    """

    def __init__(self, source: SourceText, diagnostics: DiagnosticCollector, start: int) -> None:
        self.source, self.diagnostics, self.start = source, diagnostics, start
        self.anchors: dict[str, YamlNode | None] = {}
        """Nodes by anchor name; None while the node is being built, to detect cycles."""
        self.value_count = 0
        if len(source.text) > MAX_CHARACTERS:
            message = (
                f"this has {len(source.text):,} characters, and {MAX_CHARACTERS:,} is the most"
            )
            raise YamlSyntaxError(
                message,
                SourceSpan(0, 0),
                "an experiment is a page or two of YAML; is this the right file?",
            )
        if invalid := _INVALID_CHARACTER.search(source.text):
            code = f"U+{ord(invalid[0]):04X}"
            raise YamlSyntaxError(
                f"this is not a text: it holds the character {code}",
                SourceSpan(invalid.start(), invalid.end()),
            )
        self.events = self.iter_events()

    def iter_events(self) -> Iterator[yaml_events.Event]:
        try:
            yield from YAML(typ="safe", pure=True).parse(self.source.text[self.start :])
        except YAMLError as error:
            raise translate_yaml_error(error, self.source, self.start) from None
        except (ValueError, OverflowError):  # "\UFFFFFFFF" is beyond the last code point
            escape = re.compile(r"\\U(?!0010|000)\w{0,8}").search(self.source.text, self.start)
            span = SourceSpan(*escape.span()) if escape else SourceSpan(self.start, self.start)
            raise YamlSyntaxError("this escape stands for no character", span) from None

    def build_document(self) -> YamlNode:
        root = None
        for event in self.events:
            if isinstance(event, yaml_events.DocumentStartEvent):
                if root is not None:
                    raise YamlSyntaxError(
                        "a second document begins here",
                        self.get_span(event),
                        "one file, one document",
                    )
                root = self.build_node(next(self.events), 1)
        return root or YamlNode(self.source, SourceSpan(self.start, self.start), None)

    def get_span(self, first: Any, last: Any = None) -> SourceSpan:
        """From the start of event `first` to the end of event `last` (or `first`)."""
        return SourceSpan(
            self.start + first.start_mark.index, self.start + (last or first).end_mark.index
        )

    def build_node(self, event: Any, depth: int) -> YamlNode:
        span = self.get_span(event)
        if isinstance(event, yaml_events.AliasEvent):
            return self.resolve_alias(event.anchor, span)
        if event.tag is not None:
            raise YamlSyntaxError(
                "tags such as `!!str` have no meaning here",
                span,
                "take it out; quotes make a text",
            )
        self.value_count += 1
        # ruamel is slow: a megabyte of numbers would take half a minute.
        if self.value_count > MAX_VALUES:
            raise YamlSyntaxError(f"more than {MAX_VALUES:,} values end here", span)
        if depth > MAX_DEPTH:
            raise YamlSyntaxError(f"nested more than {MAX_DEPTH} deep", span)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if isinstance(event, yaml_events.ScalarEvent):
            node = self.build_scalar(event, span)
        elif isinstance(event, yaml_events.SequenceStartEvent):
            node = self.build_sequence(event, depth)
        else:
            node = self.build_mapping(event, depth)
        if node.value_count > MAX_VALUES:
            raise YamlSyntaxError(f"this stands for more than {MAX_VALUES:,} values", span)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def build_scalar(self, event: yaml_events.ScalarEvent, span: SourceSpan) -> YamlNode:
        if event.style is None:
            return YamlNode(self.source, span, parse_scalar(event.value))
        try:  # JSON writes characters beyond U+FFFF as two surrogate escapes
            text = event.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeError:
            raise YamlSyntaxError("an escape in this text stands for no character", span) from None
        return YamlNode(self.source, span, text, is_quoted=event.style in "'\"")

    def resolve_alias(self, name: str, span: SourceSpan) -> YamlNode:
        if name not in self.anchors:
            raise YamlSyntaxError(f"no `&{shorten(name)}` stands before this", span)
        target = self.anchors[name]
        if target is None:
            raise YamlSyntaxError(f"`*{shorten(name)}` stands inside what it repeats", span)
        return replace(target, span=span, is_block=False)

    def build_sequence(self, event: yaml_events.SequenceStartEvent, depth: int) -> YamlNode:
        items: list[YamlNode] = []
        while not isinstance(last := next(self.events), yaml_events.SequenceEndEvent):
            items.append(self.build_node(last, depth + 1))
        return self.build_collection(event, last, items, items)

    def build_mapping(self, event: yaml_events.MappingStartEvent, depth: int) -> YamlNode:
        entries: dict[str, YamlEntry] = {}
        while not isinstance(last := next(self.events), yaml_events.MappingEndEvent):
            key, value = (
                self.build_node(last, depth + 1),
                self.build_node(next(self.events), depth + 1),
            )
            if not isinstance(key.value, str):
                helps = [
                    f'a name that looks like a number takes quotes: `"{key.source_text}"`'
                    if not key.is_block
                    else None
                ]
                self.diagnostics.add(
                    "E0802", f"a key must be a name, got {key.source_text}", key.span, helps=helps
                )
            elif key.value in entries:
                labels = [Label(entries[key.value].key.span, "first here")]
                self.diagnostics.add(
                    "E0806", f"`{shorten(key.value)}` stands here twice", key.span, labels=labels
                )
            else:
                entries[key.value] = YamlEntry(key, value)
        return self.build_collection(
            event, last, entries, [entry.node for entry in entries.values()]
        )

    def build_collection(
        self, first: Any, last: Any, value: Any, children: list[YamlNode]
    ) -> YamlNode:
        # The end event of a block collection lies beyond it: its span is only its start.
        span = self.get_span(first, last if first.flow_style else None)
        size = 1 + sum(child.value_count for child in children)
        return YamlNode(self.source, span, value, is_block=not first.flow_style, value_count=size)
