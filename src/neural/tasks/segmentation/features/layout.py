"""Layout of the text: headings, blank lines, list items, speaker turns, breaks, code, tables."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.tokenization import ElementTokens

MAX_BLANK_LINES = 4
"""More blank lines count as this many."""


class Layout(Feature):
    """Layout before each element (sentence, line or paragraph).

    `known` is 1 if the layout of the document is known; else all columns are 0, as in documents
    that are composed of parts of several texts. `heading`, `new_line`, `item`, `turn` and `break`
    are 1 if the element is a heading, begins a line or a list item, is the first of another
    speaker, or follows a rule or a page break. `after_heading` is 1 for the element after one.

    `heading_rank` is 1 for a heading of the document's top level, ½ for the next one, ⅓ … below.
    `blank_lines` is the number of blank lines before the element. `wider_gap` is how many more
    there are than usual: than before the median element that follows any. `raw` and `after_raw` are
    1 if the element, or the one before, is code or a table. `indentation_change` is
    log(1 + columns) minus that of the line before.

    The last columns are the same in all rows: the fractions of elements that are headings and that
    follow a blank line, and log(1 + number of elements) / 10. They tell how far the author marked
    the parts at all.
    """

    version: ClassVar[int] = 2
    columns: ClassVar[tuple[str, ...]] = (
        "known",
        "heading",
        "heading_rank",
        "after_heading",
        "new_line",
        "blank_lines",
        "wider_gap",
        "item",
        "turn",
        "break",
        "raw",
        "after_raw",
        "indentation_change",
        "heading_share",
        "paragraph_share",
        "log_elements",
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Columns from the layout of the document."""
        layout, count = document.layout, len(document)
        if layout is None:
            return np.zeros((count, len(self.columns)))
        is_heading = layout.heading_level > 0
        blank_lines = np.minimum(layout.blank_lines, MAX_BLANK_LINES).astype(np.float64)
        is_spaced = layout.blank_lines > 0
        is_spaced[0] = False
        usual_gap = np.median(blank_lines[is_spaced]) if is_spaced.any() else 0.0
        is_raw = layout.is_code | layout.is_table
        columns = [
            np.ones(count),
            is_heading,
            _rank_headings(layout.heading_level),
            _shift(is_heading),
            layout.begins_line,
            blank_lines,
            np.maximum(blank_lines - usual_gap, 0),
            layout.begins_list_item,
            layout.begins_turn,
            layout.follows_break,
            is_raw,
            _shift(is_raw),
            _indentation_changes(layout.indentation, layout.begins_line),
            np.full(count, is_heading.mean()),
            np.full(count, is_spaced.mean()),
            np.full(count, np.log1p(count) / 10),
        ]
        return np.stack(columns, axis=1).astype(np.float64)


def _rank_headings(levels: np.ndarray) -> np.ndarray:
    """1 / rank of each heading's level among the levels of the document; 0 for no heading."""
    distinct = np.unique(levels[levels > 0])
    ranks = np.searchsorted(distinct, levels) + 1
    return np.where(levels > 0, 1 / ranks, 0.0)


def _shift(values: np.ndarray) -> np.ndarray:
    """Value of the element before; False for the first."""
    return np.append(False, values[:-1])


def _indentation_changes(indentation: np.ndarray, begins_line: np.ndarray) -> np.ndarray:
    """Change of log(1 + columns) from the line before, for elements that begin a line."""
    out = np.zeros(len(indentation))
    lines = np.flatnonzero(begins_line)
    out[lines] = np.diff(np.log1p(indentation[lines].astype(np.float64)), prepend=0.0)
    return out
