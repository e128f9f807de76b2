"""Plain text whose parts are told by blank lines, like the stanzas of a song, or by headings, like those of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from neural.tasks.cutting.document import Document, joined
from neural.tasks.cutting.elements import spans
from neural.tasks.cutting.headings import is_marked, is_numbered, is_underline
from neural.tasks.cutting.reader import Reader, Reading
from neural.tasks.cutting.reading import read_raw
from neural.tasks.task import TaskError

_BLANK = re.compile(r"(?>\r\n|\r|\n)[^\S\r\n]*(?>\r\n|\r|\n)\s*|\f")   # (?>…): \r\n is one line end, never two


class Plain(Reader):
    """One document per file. Headings are left out: they are the answer. So is how the text was set out."""

    looks: ClassVar[str] = "a .txt, .md or .rst file, or a folder of them: parts told by blank lines or by headings"
    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".md", ".markdown", ".rst", ".text")

    @classmethod
    def read(cls, path: Path, reading: Reading) -> tuple[list[Document], list[str]]:
        """By headings where there are two and more, unless blank lines were asked for."""
        raw = read_raw(path)
        text = raw.text.removeprefix("\ufeff")
        by_headings = [] if reading.told_by == "blank_lines" else list(sections(text))
        if reading.told_by == "headings" and len(by_headings) < 2:
            raise TaskError(f"{path.name} has no headings (`# …`, underlined, or numbered as `2.1 …`)")
        texts = by_headings if len(by_headings) > 2 or reading.told_by == "headings" else _BLANK.split(text)
        parts = [[one[a:b] for a, b in spans(one, reading.unit)] for one in texts]
        if not any(parts):
            raise TaskError(f"{path.name} has headings and nothing between them")
        return [joined(path.stem, parts)], list(raw.remarks)


def sections(text: str) -> Iterator[str]:
    """What stands between headings, in order; the first may be empty. Headings in fenced code are none."""
    lines = text.splitlines(keepends=True)
    bare = ["", *(line.strip() for line in lines), ""]
    section: list[str] = []
    fenced = False
    for (above, line, below), whole in zip(zip(bare, bare[1:], bare[2:], strict=False), lines, strict=True):
        fence = line.startswith(("```", "~~~"))
        fenced ^= fence
        if fence or fenced:
            section.append(whole)
        elif _is_heading(line, above, below):
            yield "".join(section)
            section = []
        elif not _underlines(line, above):
            section.append(whole)
    yield "".join(section)


def _is_heading(line: str, above: str, below: str) -> bool:
    """Marked, underlined, or numbered and alone."""
    if not line:
        return False
    return is_marked(line) or _underlines(below, line) or (not above and not below and is_numbered(line))


def _underlines(line: str, above: str) -> bool:
    """Whether a line underlines the one above it, which is one line and about as long."""
    if not line or not above or not is_underline(line) or is_underline(above):
        return False
    return len(above) <= 100 and len(line) >= min(len(above), 3) and above[-1] not in ".,;"
