"""Documents whose author marked the parts: headings decide where segments begin.

A model that has learned from layout gives headings a high probability, but it also finds changes of
subject inside long sections. If the author wrote headings, readers expect the parts that the author
made. So in such a document the log-odds of all headings are raised, and those of all other elements
lowered; every decoder then prefers headings, and limits on the length of a segment still find the
best places inside a section.
"""

from __future__ import annotations

import numpy as np

from neural.tasks.segmentation.probability import probabilities_to_margins
from neural.tasks.segmentation.structure import Layout

LOG_ODDS_SHIFT = 5.0
"""How much the log-odds of headings are raised, and those of other elements lowered."""
MIN_HEADINGS = 2
"""Headings of a document whose parts the author marked, without one at its start."""
MAX_PART_ELEMENTS = 200
"""Mean number of elements of a part up to which the headings are taken for all that there are.

A long text with a few lines that look like headings is not marked by its author.
"""
MIN_MEAN_PROBABILITY = 0.5
"""Mean probability of the headings from which they are believed.

Short lines that only look like headings, such as the headers of pages, have a lower one.
"""

LAYOUT_PROBABILITIES = (0.99, 1e-3, 1e-4)
"""Where a segment begins by the layout alone; at other paragraphs; at other elements."""


def find_author_headings(layout: Layout, probabilities: np.ndarray) -> np.ndarray | None:
    """True at the headings that begin a part, (n,); None if the author did not mark the parts.

    `probabilities` are those of the model.
    """
    is_heading = (layout.heading_level > 0) & layout.can_begin
    is_heading[0] = False
    count = int(is_heading.sum())
    if count < MIN_HEADINGS or len(is_heading) > MAX_PART_ELEMENTS * (count + 1):
        return None
    return is_heading if probabilities[is_heading].mean() >= MIN_MEAN_PROBABILITY else None


def follow_author_headings(layout: Layout, probabilities: np.ndarray) -> np.ndarray:
    """P(boundary) that follows the author's headings, (n,); unchanged if there are none."""
    is_heading = find_author_headings(layout, probabilities)
    if is_heading is None:
        return probabilities
    margins = probabilities_to_margins(probabilities)
    shifted = 1 / (1 + np.exp(-(margins + np.where(is_heading, LOG_ODDS_SHIFT, -LOG_ODDS_SHIFT))))
    shifted[0] = 0.0
    return shifted


def follow_layout_alone(layout: Layout | None, count: int) -> np.ndarray:
    """P(boundary) of a text that no model can read, (n,): segments begin at headings.

    Without headings they begin at paragraphs, speakers' turns and breaks. Limits on the length of a
    segment prefer paragraphs to sentences.
    """
    begins, paragraph, other = LAYOUT_PROBABILITIES
    probabilities = np.full(count, other)
    if layout is not None:
        is_heading = (layout.heading_level > 0) & layout.can_begin
        is_paragraph = (layout.blank_lines > 0) | layout.begins_turn | layout.follows_break
        probabilities[is_paragraph] = paragraph
        probabilities[is_heading if is_heading[1:].any() else is_paragraph] = begins
    probabilities[0] = 0.0
    return probabilities
