"""Reader of plain text. Segments are separated by blank lines (stanzas) or headings (sections).

The text of each segment is split into elements: sentences or lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from neural.core.errors import TaskError
from neural.tasks.segmentation.document import SegmentationDocument, join_segments
from neural.tasks.segmentation.line_wrapping import is_heading_underline, is_marked_heading
from neural.tasks.segmentation.reader import DocumentReader, ReaderOptions, read_text
from neural.tasks.segmentation.text_splitting import find_elements, is_numbered_heading

_MAX_UNDERLINED_CHARACTERS = 100
"""A longer line is not a heading, even if a line such as `=====` follows."""
# The group (?>…) is atomic, so that \r\n is one line end and never two.
_BLANK_LINES = re.compile(r"(?>\r\n|\r|\n)[^\S\r\n]*(?>\r\n|\r|\n)\s*|\f")


class Plain(DocumentReader):
    """One document per file.

    The document has neither headings nor layout, because both would reveal the boundaries.
    """

    description: ClassVar[str] = (
        "a .txt, .md or .rst file, or a folder of them: segments between blank lines or headings"
    )
    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".md", ".markdown", ".rst", ".text")

    @classmethod
    def read(
        cls, path: Path, options: ReaderOptions
    ) -> tuple[list[SegmentationDocument], list[str]]:
        """The document of the file, with segments as `options.boundary_marker` says.

        `auto` means headings if there are at least two, else blank lines.
        """
        raw = read_text(path)
        text = raw.text.removeprefix("\ufeff")
        sections = [] if options.boundary_marker == "blank_lines" else list(split_sections(text))
        if options.boundary_marker == "headings" and len(sections) < 2:
            raise TaskError(
                f"{path.name} has no headings (`# …`, underlined, or numbered as `2.1 …`)"
            )
        segment_texts = (
            sections
            # Three sections have two headings: the first section is before the first heading.
            if len(sections) > 2 or options.boundary_marker == "headings"
            else _BLANK_LINES.split(text)
        )
        segments = [
            [segment[start:end] for start, end in find_elements(segment, options.unit)]
            for segment in segment_texts
        ]
        if not any(segments):
            raise TaskError(f"{path.name} has headings and nothing between them")
        return [join_segments(path.stem, segments)], list(raw.notes)


def split_sections(text: str) -> Iterator[str]:
    """Yield the texts between headings, in order.

    The first is the text before the first heading; it may be empty. Lines inside Markdown code
    fences are never headings.
    """
    lines = text.splitlines(keepends=True)
    stripped_lines = ["", *(line.strip() for line in lines), ""]
    section: list[str] = []
    in_code = False
    for (above, line, below), full_line in zip(
        zip(stripped_lines, stripped_lines[1:], stripped_lines[2:], strict=False),
        lines,
        strict=True,
    ):
        is_fence = line.startswith(("```", "~~~"))
        in_code ^= is_fence
        if is_fence or in_code:
            section.append(full_line)
        elif _is_heading(line, above, below):
            yield "".join(section)
            section = []
        elif not _is_underline_of(line, above):
            section.append(full_line)
    yield "".join(section)


def _is_heading(line: str, above: str, below: str) -> bool:
    """True for `# Heading`, for an underlined line, or for `2.1 Heading` between blank lines.

    `above` and `below` are the lines before and after `line`; all are stripped.
    """
    if not line:
        return False
    return (
        is_marked_heading(line)
        or _is_underline_of(below, line)
        or (not above and not below and is_numbered_heading(line))
    )


def _is_underline_of(line: str, above: str) -> bool:
    """True if `line` underlines the heading `above`; both are stripped."""
    if not line or not above or not is_heading_underline(line) or is_heading_underline(above):
        return False
    return (
        len(above) <= _MAX_UNDERLINED_CHARACTERS
        and len(line) >= min(len(above), 3)
        and above[-1] not in ".,;"  # the end of a sentence or of a wrapped line, not of a heading
    )
