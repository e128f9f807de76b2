"""Tokenised texts with rationales: a JSON object per line, or HateXplain's file.

    {"tokens": ["you", "are", "kind"], "label": "normal", "rationale": [0, 0, 1]}

A token is a segment of a focus model. `rationale` marks the tokens that decide the label (1, others
0): the foreground. Without marked tokens the foreground is unknown: the text is used in training,
but not in metrics of the focus. HateXplain's format (`post_tokens`, `annotators`, `rationales`;
Mathew et al., 2021) is read too: the label is that of the majority, and a token is marked if at
least half of the annotators who marked any token marked it. Posts without hate have no marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.core.errors import TaskError
from neural.core.json_values import parse_json
from neural.tasks.focus.data import (
    SPLIT_NAMES,
    SegmentData,
    SegmentSplit,
    check_labels,
    split_three_ways,
)

UNKNOWN_TOKEN = "<unknown>"
"""Token 0: tokens that are not in the training examples, and padding, which the mask hides."""
MIN_EXAMPLES = 10
"""Smallest number of texts in a file; fewer are an error."""


class RationaleText(NamedTuple):
    """A tokenised text with its label and marked tokens."""

    tokens: list[str]
    label: str
    rationale: list[bool] | None


def read_token_file(path: Path, *, seed: int) -> SegmentData:
    """Read all texts, padded to the longest; the vocabulary is that of the training examples.

    `seed` decides the split into training, validation and test examples.
    """
    name = path.name
    texts = [
        _parse_text(record, f"{name}, {location}") for location, record in read_json_records(path)
    ]
    if len(texts) < MIN_EXAMPLES:
        raise TaskError(
            f"{name}: {len(texts)} examples are too few; at least {MIN_EXAMPLES} are needed"
        )
    m = max(len(text.tokens) for text in texts)
    if m < 2:
        raise TaskError(f"{name}: every text has one token, which leaves nothing to choose")
    classes = sorted({text.label for text in texts})
    labels = np.array([classes.index(text.label) for text in texts], dtype=np.int64)
    split_indices = split_three_ways(len(texts), seed)
    check_labels(labels[split_indices[0]], len(classes), name)
    words = sorted(
        {token for index in split_indices[0] for token in texts[index].tokens} - {UNKNOWN_TOKEN}
    )
    vocabulary = (UNKNOWN_TOKEN, *words)
    members, mask = encode_tokens([text.tokens for text in texts], vocabulary)
    foreground = np.zeros((len(texts), m), dtype=bool)
    for row, text in enumerate(texts):
        foreground[row, : len(text.tokens)] = text.rationale or False
    has_foreground = bool(foreground.any())
    # `SegmentSplit` stores segments as indices (members) into a bank of distinct segments. Here the
    # distinct segments are the token ids, so index and entry are equal.
    bank = np.arange(len(words) + 1, dtype=np.int64)[:, None]
    splits = {
        split_name: SegmentSplit(
            unit_bank=bank,
            members=members[indices],
            labels=labels[indices],
            foreground=foreground[indices] if has_foreground else None,
            mask=mask[indices],
        )
        for split_name, indices in zip(SPLIT_NAMES, split_indices, strict=True)
    }
    return SegmentData(data_name=name, splits=splits, classes=tuple(classes), vocabulary=vocabulary)


def encode_tokens(
    texts: Sequence[Sequence[str]], vocabulary: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Token ids, (texts, longest), 0 for unknown tokens and padding; the mask is False for padding."""
    ids = {word: index for index, word in enumerate(vocabulary)}
    shape = len(texts), max(map(len, texts))
    members, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    for row, tokens in enumerate(texts):
        members[row, : len(tokens)] = [ids.get(token, 0) for token in tokens]
        mask[row, : len(tokens)] = True
    return members, mask


def read_json_records(path: Path) -> list[tuple[str, Any]]:
    """(location, record) of each record of a `.json` or `.jsonl` file (one record per line).

    The location, such as "line 7", is for error messages.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path.name} cannot be read: {error}") from None
    if path.suffix.lower() == ".json":
        try:
            content = parse_json(text)
        except ValueError as error:
            raise TaskError(f"{path.name} is not valid JSON: {error}") from None
        pairs = (
            content.items()
            if isinstance(content, dict)
            else enumerate(content if isinstance(content, list) else [])
        )
        return [(f"entry {name}", record) for name, record in pairs]
    records = []
    for line_number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                records.append((f"line {line_number}", parse_json(line)))
            except ValueError as error:
                raise TaskError(
                    f"{path.name}, line {line_number} is not valid JSON: {error}"
                ) from None
    return records


def _is_token_mask(marks: Any, count: int) -> bool:
    """Whether `marks` is a list of 0 or 1 for each of `count` tokens."""
    fits = isinstance(marks, list) and len(marks) == count
    return fits and all(isinstance(mark, int) and mark in (0, 1) for mark in marks)


def parse_tokens(record: Any, location: str) -> list[str]:
    """The tokens of a record of either format; `location` is named in errors."""
    if not isinstance(record, dict):
        raise TaskError(f"{location}: must be an object with `tokens` and `label`")
    tokens = record.get("tokens", record.get("post_tokens"))
    if not (
        isinstance(tokens, list) and tokens and all(isinstance(token, str) for token in tokens)
    ):
        raise TaskError(f"{location}: `tokens` must be a list of words, one or more")
    return tokens


def _parse_text(record: Any, location: str) -> RationaleText:
    """Parse a record of either format; `location` is named in errors."""
    tokens = parse_tokens(record, location)
    label = record.get("label")
    if label is None and isinstance(record.get("annotators"), list):
        votes = Counter(
            str(vote["label"])
            for vote in record["annotators"]
            if isinstance(vote, dict) and "label" in vote
        )
        label = votes.most_common(1)[0][0] if votes else None
    if label is None:
        raise TaskError(f'{location}: the label is missing; write `"label": …`')
    marks = record.get("rationale")
    if marks is None and isinstance(record.get("rationales"), list):
        valid_votes = [vote for vote in record["rationales"] if _is_token_mask(vote, len(tokens))]
        marks = (
            [int(2 * sum(votes) >= len(valid_votes)) for votes in zip(*valid_votes, strict=True)]
            if valid_votes
            else None
        )
    if marks is not None and not _is_token_mask(marks, len(tokens)):
        raise TaskError(
            f"{location}: `rationale` must be 0 or 1 for each of the {len(tokens)} tokens"
        )
    return RationaleText(
        tokens, str(label), None if marks is None else [bool(mark) for mark in marks]
    )
