"""Blocks of a text: paragraphs, headings, list items, code, tables, rules and hidden markup.

The parsers of plain text, Markdown and HTML give a `ParsedText`. Its clean text is the text without
markup. In plain text and Markdown it is as long as the source, with spaces in place of markup; in
HTML it is shorter, and `source_positions` maps it to the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np


class BlockKind(IntEnum):
    """What a block is."""

    PROSE = 0
    HEADING = 1
    CODE = 2
    TABLE = 3
    RULE = 4
    """A break between parts: `***`, `<hr>`."""
    HIDDEN = 5
    """Markup without text: a comment, front matter."""


class Block(NamedTuple):
    """One block."""

    start: int
    """Index of its first character in the source, markup included."""
    end: int
    content_start: int
    """Index of its first character in the clean text, without markup."""
    content_end: int
    kind: BlockKind = BlockKind.PROSE
    level: int = 0
    """Level of a heading, 1 to 6."""
    blank_lines: int = 0
    """Blank lines before the block."""
    indent: int = 0
    """Columns of white space before the block."""
    is_item: bool = False
    """It begins a list item."""
    is_turn: bool = False
    """Another speaker begins."""
    follows_break: bool = False
    """It follows a page break; that it follows a rule is marked by `attach_hidden`."""


@dataclass(frozen=True, eq=False)
class BlockTable:
    """Blocks in order, as arrays with an entry per block; the fields are those of `Block`."""

    start: np.ndarray
    end: np.ndarray
    content_start: np.ndarray
    content_end: np.ndarray
    kind: np.ndarray
    level: np.ndarray
    blank_lines: np.ndarray
    indent: np.ndarray
    is_item: np.ndarray
    is_turn: np.ndarray
    follows_break: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def from_blocks(cls, blocks: Sequence[Block]) -> BlockTable:
        """Table of a list of blocks."""
        table = np.array(blocks, np.int64).reshape(len(blocks), len(Block._fields))
        columns = dict(zip(Block._fields, table.T.copy(), strict=True))
        for name in ("is_item", "is_turn", "follows_break"):
            columns[name] = columns[name].astype(bool)
        return cls(**columns)

    def select(self, rows: np.ndarray) -> BlockTable:
        """Table of some of the blocks."""
        return replace(self, **{name: getattr(self, name)[rows] for name in Block._fields})


@dataclass(frozen=True, eq=False)
class ParsedText:
    """Blocks and clean text of a source text."""

    clean_text: str
    codes: np.ndarray
    """Code points of the clean text, uint32."""
    blocks: BlockTable
    source_positions: tuple[np.ndarray, np.ndarray] | None = None
    """Starts of chunks in the clean text and in the source; None if both texts have equal offsets.

    Within a chunk, both texts have the same characters.
    """

    def map_to_source(self, positions: np.ndarray) -> np.ndarray:
        """Positions in the source of characters of the clean text."""
        if self.source_positions is None:
            return positions
        clean_starts, source_starts = self.source_positions
        chunks = np.searchsorted(clean_starts, positions, side="right") - 1
        return source_starts[chunks] + positions - clean_starts[chunks]


def attach_hidden(blocks: BlockTable) -> BlockTable:
    """Blocks that have text; rules and hidden markup are joined to the span of a neighbour.

    A rule ends the block before it, other markup without text begins the block after it. The block
    after a rule gets `follows_break`.
    """
    is_text = blocks.kind < BlockKind.RULE
    if is_text.all() or not is_text.any():
        return blocks.select(np.flatnonzero(is_text))
    start, end, follows_break, blank_lines = (
        array.copy()
        for array in (blocks.start, blocks.end, blocks.follows_break, blocks.blank_lines)
    )
    rows, hidden = np.flatnonzero(is_text), np.flatnonzero(~is_text)
    after = np.searchsorted(rows, hidden)  # position in `rows` of the block after each
    has_after = after < len(rows)
    is_rule = blocks.kind[hidden] == BlockKind.RULE
    to_previous = (after > 0) & (is_rule | ~has_after)
    np.maximum.at(end, rows[after[to_previous] - 1], blocks.end[hidden[to_previous]])
    # Markup before a rule lies within the span that the rule extended.
    to_next = has_after & ~to_previous
    to_next &= (after == 0) | (blocks.start[hidden] >= end[rows[after - 1]])
    np.minimum.at(start, rows[after[to_next]], blocks.start[hidden[to_next]])
    next_rows = rows[after[has_after]]
    np.maximum.at(blank_lines, next_rows, blocks.blank_lines[hidden[has_after]])
    np.logical_or.at(follows_break, next_rows, (is_rule | follows_break[hidden])[has_after])
    return replace(
        blocks, start=start, end=end, follows_break=follows_break, blank_lines=blank_lines
    ).select(rows)
