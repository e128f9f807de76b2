"""Boundaries at the headings of an author: Markdown, HTML, reStructuredText and plain text.

A folder has the folders markdown/, html/ and plain/. The headings of a file are found by a parser
that is not ours: markdown-it-py, html.parser, docutils. Headings with nothing between them count
as one; a heading before any text is no boundary. `neural.segment` is scored by the F1 of its
boundaries

- with the layout: the file as it is. A boundary is right if it lies between the text before a
  heading and the text of the heading
- without it: the paragraphs alone, joined by spaces. A boundary is right where a section begins
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

import neural
from neural.core.errors import TaskError

KINDS = {
    "markdown": (".md", ".markdown"),
    "html": (".html", ".htm", ".xhtml"),
    "plain": (".rst", ".txt", ".text"),
}
"""Suffixes of the files by folder."""
Window = tuple[int, int]


@dataclass
class ParsedFile:
    """Headings and sections of a file, as an independent parser sees them."""

    windows: list[Window] = field(default_factory=list)
    """End of the text before each heading, and start of its own text, in characters."""
    sections: list[list[str]] = field(default_factory=lambda: [[]])
    """Paragraphs between headings."""
    first_text: int | None = None
    """Where the first heading begins if no text is before it: no boundary before it counts."""
    has_text: bool = False
    """Whether something was seen since the last heading, or since the beginning."""

    def add_heading(self, previous_end: int, start: int) -> None:
        """Add a heading, unless it follows another one directly or begins the file."""
        if self.has_text:
            self.windows.append((previous_end, start))
            self.sections.append([])
        elif self.first_text is None and not self.windows and not self.sections[0]:
            self.first_text = start
        self.has_text = False

    def add_text(self, text: str | None = None) -> None:
        """Add a paragraph; None is a block that is no prose, such as code."""
        self.has_text = True
        if text and text.strip():
            self.sections[-1].append(" ".join(text.split()))


def parse_markdown(text: str) -> ParsedFile:
    """Parse with markdown-it-py; a YAML header is left out."""
    from markdown_it import MarkdownIt

    front_matter = re.match(r"---\n.*?\n---\n", text, re.DOTALL)
    if front_matter:
        blank = re.sub(r"[^\n]", " ", front_matter.group())
        text = blank + text[front_matter.end() :]
    lines = _Lines(text, invisible=re.compile(r"\s*(<a\b|<!--|$)"))
    parsed, in_heading = ParsedFile(), False
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "heading_open" and token.level == 0 and token.map:
            line = lines.texts[token.map[0]]
            marker = re.match(r"\s*#*\s*", line)
            start = lines.starts[token.map[0]] + (marker.end() if marker else 0)
            parsed.add_heading(lines.find_previous_end(token.map[0]), start)
            in_heading = True
        elif token.type == "heading_close":
            in_heading = False
        elif token.type == "inline" and not in_heading:
            inline = "".join(map(_inline_text, token.children or ()))
            if inline.strip():
                parsed.add_text(inline)
        elif token.type in ("fence", "code_block", "hr") or (
            token.type == "html_block" and not token.content.startswith(("<!--", "<a "))
        ):
            parsed.add_text()
    return parsed


def _inline_text(token: Any) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type in ("text", "code_inline") else ""


class _HtmlHeadings(HTMLParser):
    """Collects headings and visible text."""

    HEADINGS = tuple(f"h{level}" for level in range(1, 7))
    HIDDEN = ("script", "style", "head", "template")
    NO_PROSE = ("pre", "code", "table")
    BLOCKS = ("p", "li", "dd", "dt", "blockquote", "div", "section", "td")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.parsed, self.lines = ParsedFile(), _Lines(text)
        self.open: list[str] = []
        self.previous_end = 0
        self.is_heading_new = False
        self.paragraph = ""
        self.feed(text)
        self.close()
        self.flush()

    @property
    def position(self) -> int:
        line, column = self.getpos()
        return self.lines.starts[line - 1] + column

    def flush(self) -> None:
        if self.paragraph.strip():
            self.parsed.add_text(unescape(self.paragraph))
        self.paragraph = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in self.HEADINGS + self.BLOCKS + self.NO_PROSE[:1]:
            self.flush()
        if tag in self.HEADINGS:
            self.is_heading_new = True
        if tag in self.HEADINGS + self.HIDDEN + self.NO_PROSE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]
        if tag in self.HEADINGS + self.BLOCKS:
            self.flush()

    def handle_data(self, data: str) -> None:
        if not data.strip() or set(self.open) & set(self.HIDDEN):
            self.paragraph += " " * bool(data) if self.paragraph else ""
            return
        start = self.position + len(data) - len(data.lstrip())
        if set(self.open) & set(self.HEADINGS):
            if self.is_heading_new:
                self.parsed.add_heading(self.previous_end, start)
            self.is_heading_new = False
        elif "pre" in self.open or "table" in self.open:
            self.parsed.add_text()
        else:
            self.paragraph += data
            self.parsed.has_text = True
        self.previous_end = self.position + len(data.rstrip())

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_data(f"&#{name};")


def parse_html(text: str) -> ParsedFile:
    """Parse with html.parser."""
    return _HtmlHeadings(text).parsed


def parse_plain(text: str) -> ParsedFile:
    """Parse with docutils: headings are underlined."""
    from docutils import core, nodes

    document = core.publish_doctree(
        text,
        settings_overrides={
            "report_level": 5,
            "halt_level": 5,
            "doctitle_xform": False,
            "sectsubtitle_xform": False,
            "file_insertion_enabled": False,
            "raw_enabled": False,
        },
    )
    lines = _Lines(text, invisible=re.compile(r"\s*(\.\. _|$)"))
    parsed, position = ParsedFile(), 0
    for node in document.findall(
        lambda node: isinstance(node, nodes.title | nodes.paragraph | nodes.literal_block)
    ):
        if isinstance(node, nodes.title) and isinstance(node.parent, nodes.section):
            # docutils does not say in which line a title is
            found = lines.find_title(node.rawsource or node.astext(), position)
            if found is None:
                continue
            position = found + 1
            first = found - 1 if lines.is_underline(found - 1) else found  # a line above the title
            indent = len(lines.texts[found]) - len(lines.texts[found].lstrip())
            parsed.add_heading(lines.find_previous_end(first), lines.starts[found] + indent)
        elif isinstance(node, nodes.paragraph):
            parsed.add_text(node.astext())
        else:
            parsed.add_text()
    return parsed


class _Lines:
    """Lines of a text with their offsets."""

    def __init__(self, text: str, invisible: re.Pattern[str] = re.compile(r"\s*$")) -> None:
        # "\n" alone ends a line, as html.parser counts them
        self.texts = text.split("\n")
        self.starts = np.cumsum([0, *(len(line) + 1 for line in self.texts)]).tolist()
        self.invisible = invisible

    def find_previous_end(self, index: int) -> int:
        """End of the last line before line `index` that shows something."""
        for line in range(index - 1, -1, -1):
            if not self.invisible.match(self.texts[line]):
                return self.starts[line] + len(self.texts[line].rstrip())
        return 0

    def is_underline(self, index: int) -> bool:
        """Whether the line consists of one repeated punctuation character."""
        line = self.texts[index].strip() if 0 <= index < len(self.texts) else ""
        return len(line) > 1 and len(set(line)) == 1 and not line[0].isalnum()

    def find_title(self, title: str, start: int) -> int | None:
        """Index of the line with an underlined title, at or after line `start`."""
        for index in range(start, len(self.texts)):
            if self.texts[index].strip() == title.strip() and self.is_underline(index + 1):
                return index
        return None


PARSERS: dict[str, Callable[[str], ParsedFile]] = {
    "markdown": parse_markdown,
    "html": parse_html,
    "plain": parse_plain,
}


def measure_structured(folder: Path, max_files: int) -> dict[str, Any]:
    """F1 at the headings for every kind of files, with and without their layout."""
    results = {}
    for kind, suffixes in KINDS.items():
        texts = [
            path.read_text(encoding="utf-8", errors="replace")
            for path in sorted((folder / kind).rglob("*"))
            if path.suffix.lower() in suffixes
        ]
        files = [
            (text, parsed) for text in texts if len((parsed := PARSERS[kind](text)).windows) > 0
        ]
        if not files:
            continue
        chosen = np.unique(np.linspace(0, len(files) - 1, max_files).round().astype(int))
        files = [files[index] for index in chosen]
        results[kind] = {
            "files": len(files),
            "headings": sum(len(parsed.windows) for _, parsed in files),
            "layout kept": score_boundaries(
                (skip_beginning(segment_starts(text), parsed), parsed.windows)
                for text, parsed in files
            ),
            "layout removed": score_boundaries(
                (segment_starts(text), windows)
                for text, windows in (join_sections(parsed.sections) for _, parsed in files)
                if windows
            ),
        }
    return results


def join_sections(sections: Sequence[Sequence[str]]) -> tuple[str, list[Window]]:
    """Text of all paragraphs in one line, and windows of one position where sections begin."""
    text, windows = "", []
    for section in filter(None, sections):
        if text:
            text += " "
            windows.append((len(text), len(text)))
        text += " ".join(section)
    return text, windows


def segment_starts(text: str) -> list[int]:
    """Offsets of the first visible character of every segment but the first."""
    try:
        segments = list(neural.segment(text))
    except TaskError:  # no text
        return []
    starts = [segment.start for segment in segments[1:]]
    return [start + len(text[start:]) - len(text[start:].lstrip()) for start in starts]


def skip_beginning(starts: Iterable[int], parsed: ParsedFile) -> list[int]:
    """Starts after the first heading, if that one begins the file.

    A label or comment may be before it, which is no text for the parser.
    """
    return [start for start in starts if start > (parsed.first_text or 0)]


def score_boundaries(files: Iterable[tuple[list[int], list[Window]]]) -> dict[str, float]:
    """Precision, recall and F1 over all files; a window counts once."""
    hits = predicted = true = 0
    for starts, windows in files:
        hits += sum(any(low <= start <= high for start in starts) for low, high in windows)
        predicted += len(starts)
        true += len(windows)
    precision, recall = hits / max(1, predicted), hits / max(1, true)
    return {
        "f1": 2 * hits / max(1, predicted + true),
        "precision": precision,
        "recall": recall,
    }
