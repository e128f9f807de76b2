"""Layout of the text: line breaks, blank lines, indentation, list items."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.text_splitting import (
    count_blank_lines,
    get_indentation,
    is_list_item,
)
from neural.tasks.segmentation.tokenization import ElementTokens

TAB_COLUMNS = 8
"""Width of a tab, in characters."""
_MAX_BLANK_LINES = 3
"""More blank lines count as this many."""


class Layout(Feature):
    """Layout before each element (sentence or line).

    `known` is 1 if the full text of the document is known; else all columns are 0, as in documents
    that are composed of parts of several texts. `new_line`, `new_page` and `item` are 1 if the
    element begins a line, follows a form feed, or begins with the mark of a list item.
    `blank_lines` is the number of blank lines before it. `indentation` is log(1 + width in
    characters), 0 within a line; `indentation_change` is relative to the line before.
    """

    columns: ClassVar[tuple[str, ...]] = (
        "known",
        "new_line",
        "blank_lines",
        "new_page",
        "indentation",
        "indentation_change",
        "item",
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Columns from the white space before each element."""
        out = np.zeros((len(document), len(self.columns)))
        gaps = document.gap_texts()
        if gaps is None:
            return out
        previous_indentation = 0.0
        for row, (gap, element) in enumerate(zip(gaps, document.elements, strict=True)):
            indent = get_indentation(gap)
            is_new_line = row == 0 or len(indent) < len(gap)
            indentation = (
                float(np.log1p(len(indent.expandtabs(TAB_COLUMNS))))
                if is_new_line and indent
                else 0.0
            )
            blank_lines = min(count_blank_lines(gap), _MAX_BLANK_LINES) if row and gap != " " else 0
            out[row] = (
                1,
                is_new_line,
                blank_lines,
                "\f" in gap,
                indentation,
                indentation - previous_indentation,
                is_list_item(element),
            )
            previous_indentation = indentation if is_new_line else previous_indentation
        return out
