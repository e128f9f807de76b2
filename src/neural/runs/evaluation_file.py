"""The newest evaluation of a run: `evaluation.json` in its folder, written by `neural evaluate`.

It has all scores, for other programs, and the printed tables, which the page of the run shows.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from neural.core.files import read_small_file, write_atomically
from neural.core.json_values import parse_json
from neural.core.page_section import PageSection

EVALUATION_FILE = "evaluation.json"
EVALUATION_FILE_VERSION = 1


def save_evaluation(
    folder: Path, scores: Mapping[str, Any], sections: Sequence[PageSection]
) -> Path:
    """Write into a run folder, replacing an earlier file. Raises OSError."""
    saved = {
        "version": EVALUATION_FILE_VERSION,
        "time": time.time(),
        "evaluation": _replace_non_finite(scores),
        "sections": [_replace_non_finite(section.to_dict()) for section in sections],
    }
    path = folder / EVALUATION_FILE
    write_atomically(path, json.dumps(saved, indent=1, allow_nan=False) + "\n")
    return path


class EvaluationSummary(NamedTuple):
    """Scores of the run itself in its newest evaluation, without those of baselines."""

    time: float
    """When it was evaluated, in seconds since 1970."""
    data: str
    """What was scored: `180 validation examples of digits`; may be empty."""
    scores: dict[str, dict[str, float | None]]
    """By name: `value`, and the ends of its interval, `low` and `high`, or None."""


def load_evaluation_sections(folder: Path) -> list[PageSection]:
    """Tables of the newest evaluation; none without one. ValueError if the file is not valid."""
    with _describe_errors():
        saved = _read_evaluation(folder)
        if saved is None:
            return []
        sections = saved["sections"]
        if not isinstance(sections, list):
            raise ValueError("`sections` must be a list")
        return [_parse_section(section) for section in sections]


def load_evaluation_summary(folder: Path) -> EvaluationSummary | None:
    """Scores of the newest evaluation; None without any. ValueError if the file is not valid.

    Tasks write the scores of a run as `scores` (numbers), or as the first of `rows` (intervals); the
    other rows are baselines.
    """
    with _describe_errors():
        saved = _read_evaluation(folder)
        if saved is None:
            return None
        evaluation = saved["evaluation"]
        scores = evaluation.get("scores")
        if scores is None:
            scores = next(iter((evaluation.get("rows") or {}).values()), {})
        intervals = {name: _parse_interval(score) for name, score in scores.items()}
        known = {name: interval for name, interval in intervals.items() if interval is not None}
        data = evaluation.get("data", "")
        if not isinstance(data, str) or not all(isinstance(name, str) for name in known):
            raise ValueError("`data` and names of scores must be texts")
        return EvaluationSummary(float(saved["time"]), data, known) if known else None


def _read_evaluation(folder: Path) -> dict[str, Any] | None:
    """The file as JSON; None without one."""
    try:
        saved = parse_json(read_small_file(folder / EVALUATION_FILE).decode())
    except FileNotFoundError:
        return None
    if not isinstance(saved, dict) or saved.get("version") != EVALUATION_FILE_VERSION:
        raise ValueError(f"its version is not {EVALUATION_FILE_VERSION}")
    return saved


@contextmanager
def _describe_errors() -> Iterator[None]:
    """Raise ValueError with a way out for everything that a damaged file causes."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{EVALUATION_FILE} is not a valid evaluation: {error}; evaluate the run again"
        ) from None


def _parse_interval(score: Any) -> dict[str, float | None] | None:
    """A score with its interval; None if it has no number."""
    interval = score if isinstance(score, dict) else {"value": score}
    ends = {key: interval.get(key) for key in ("value", "low", "high")}
    if not all(end is None or _is_finite(end) for end in ends.values()):
        raise ValueError("scores must be numbers")
    return ends if ends["value"] is not None else None


def _parse_section(saved: Any) -> PageSection:
    """A section from JSON. ValueError for values of other types: a folder may come from anybody."""
    head, rows = saved["table_head"], saved["table_rows"]
    texts = (saved["title"], saved["text"], *head)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("titles, texts and table heads must be texts")
    cells = [cell for row in rows for cell in row]
    if not all(cell is None or isinstance(cell, str) or _is_finite(cell) for cell in cells):
        raise ValueError("table cells must be texts or numbers")
    return PageSection(
        title=saved["title"],
        text=saved["text"],
        table_head=tuple(head),
        table_rows=[tuple(row) for row in rows],
    )


def _replace_non_finite(value: Any) -> Any:
    """The same nested data with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
