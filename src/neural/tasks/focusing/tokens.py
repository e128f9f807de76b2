"""Texts as lists of tokens with rationales: a JSON object per line, or HateXplain's file.

    {"tokens": ["you", "are", "kind"], "label": "normal", "rationale": [0, 0, 1]}

`rationale` marks the tokens that decide the label, 0 or 1 each. Of a text without one, or with none marked, the
foreground is not known: it is learned from like any other and left out where the focus is judged. HateXplain's
`post_tokens`, `annotators` and `rationales` (Mathew et al., 2021) are read too: the label that most annotators gave,
and the tokens that at least half of those who marked any marked; its posts without hate have none.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.core.plain_json import read_json
from neural.tasks.focusing.data import SPLITS, Data, Split, check_labels, parts
from neural.tasks.task import TaskError

UNKNOWN = "<unknown>"
"""Token 0: what was not in the training examples; also fills up short texts, where the mask hides it."""
FEWEST = 10
"""Examples."""


class Text(NamedTuple):
    """One example."""

    tokens: list[str]
    label: str
    rationale: list[bool] | None


def read(path: Path, *, seed: int) -> Data:
    """All texts, padded to the longest, with the words of the training examples as vocabulary."""
    where = path.name
    texts = [_text(one, f"{where}, {place}") for place, one in json_objects(path)]
    if len(texts) < FEWEST:
        raise TaskError(f"{where}: {len(texts)} examples are too few; at least {FEWEST} are needed")
    m = max(len(one.tokens) for one in texts)
    if m < 2:
        raise TaskError(f"{where}: every text has one token, which leaves nothing to choose")
    classes = sorted({one.label for one in texts})
    labels = np.array([classes.index(one.label) for one in texts], dtype=np.int64)
    chosen = parts(len(texts), seed)
    check_labels(labels[chosen[0]], len(classes), where)
    words = sorted({token for number in chosen[0] for token in texts[number].tokens} - {UNKNOWN})
    ids = {word: number for number, word in enumerate(words, start=1)}
    members = np.zeros((len(texts), m), dtype=np.int64)
    mask, front = np.zeros((len(texts), m), dtype=bool), np.zeros((len(texts), m), dtype=bool)
    for row, one in enumerate(texts):
        length = len(one.tokens)
        members[row, :length] = [ids.get(token, 0) for token in one.tokens]
        mask[row, :length] = True
        front[row, :length] = one.rationale or False
    known = bool(front.any())
    bank = np.arange(len(words) + 1, dtype=np.int64)[:, None]
    splits = {
        name: Split(bank=bank, members=members[own], labels=labels[own], foreground=front[own] if known else None,
                    mask=mask[own])
        for name, own in zip(SPLITS, chosen, strict=True)
    }  # fmt: skip
    return Data(where=where, splits=splits, classes=tuple(classes), vocabulary=(UNKNOWN, *words))


def json_objects(path: Path) -> list[tuple[str, Any]]:
    """What a file of JSON holds, line by line or entry by entry, with their places for messages."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise TaskError(f"{path.name} cannot be read: {problem}") from None
    if path.suffix.lower() == ".json":
        try:
            whole = read_json(text)
        except ValueError as problem:
            raise TaskError(f"{path.name} is no JSON: {problem}") from None
        pairs = whole.items() if isinstance(whole, dict) else enumerate(whole if isinstance(whole, list) else [])
        return [(f"entry {name}", one) for name, one in pairs]
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                found.append((f"line {number}", read_json(line)))
            except ValueError as problem:
                raise TaskError(f"{path.name}, line {number} is no JSON: {problem}") from None
    return found


def _marks(given: Any, count: int) -> bool:
    """Whether it is 0 or 1 for each token."""
    right = isinstance(given, list) and len(given) == count
    return right and all(isinstance(one, int) and one in (0, 1) for one in given)


def _text(one: Any, place: str) -> Text:
    if not isinstance(one, dict):
        raise TaskError(f"{place}: must be an object with `tokens` and `label`")
    tokens = one.get("tokens", one.get("post_tokens"))
    if not (isinstance(tokens, list) and tokens and all(isinstance(token, str) for token in tokens)):
        raise TaskError(f"{place}: `tokens` must be a list of words, one or more")
    label = one.get("label")
    if label is None and isinstance(one.get("annotators"), list):
        votes = Counter(str(vote["label"]) for vote in one["annotators"] if isinstance(vote, dict) and "label" in vote)
        label = votes.most_common(1)[0][0] if votes else None
    if label is None:
        raise TaskError(f"{place}: the label is missing; write `\"label\": …`")
    marks = one.get("rationale")
    if marks is None and isinstance(one.get("rationales"), list):
        given = [vote for vote in one["rationales"] if _marks(vote, len(tokens))]
        marks = [int(2 * sum(votes) >= len(given)) for votes in zip(*given, strict=True)] if given else None
    if marks is not None and not _marks(marks, len(tokens)):
        raise TaskError(f"{place}: `rationale` must be 0 or 1 for each of the {len(tokens)} tokens")
    return Text(tokens, str(label), None if marks is None else [bool(mark) for mark in marks])
