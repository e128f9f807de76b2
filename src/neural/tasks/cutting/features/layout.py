"""How a text was set out: blank lines, indentation, items of lists. Known only where elements were cut from a text."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature
from neural.tasks.cutting.headings import begins_item
from neural.tasks.cutting.words import Words
from neural.tasks.cutting.wrapping import blank_lines, margin

TAB = 8
"""Columns of a tab."""


class Layout(Feature):
    """All 0 where the text is not known, as in data whose boundaries were read off its blank lines."""

    columns: ClassVar[tuple[str, ...]] = (
        "known", "new_line", "blank_lines", "new_page", "indentation", "indentation_change", "item",
    )  # fmt: skip

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """From what stands before each element."""
        out = np.zeros((len(document), len(self.columns)))
        gaps = document.gaps()
        if gaps is None:
            return out
        before = 0.0
        for row, (gap, element) in enumerate(zip(gaps, document.elements, strict=True)):
            indent = margin(gap)
            new_line = row == 0 or len(indent) < len(gap)
            indentation = float(np.log1p(len(indent.expandtabs(TAB)))) if new_line and indent else 0.0
            blank = min(blank_lines(gap), 3) if row and gap != " " else 0
            out[row] = (1, new_line, blank, "\f" in gap, indentation, indentation - before, begins_item(element))
            before = indentation if new_line else before
        return out
