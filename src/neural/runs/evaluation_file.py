"""The newest evaluation of a run: `evaluation.json` in its folder, written by `neural evaluate`.

It has all scores, for other programs, and the printed tables, which the page of the run shows.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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


def load_evaluation_sections(folder: Path) -> list[PageSection]:
    """Tables of the newest evaluation; none without one. ValueError if the file is not valid."""
    path = folder / EVALUATION_FILE
    try:
        saved = parse_json(read_small_file(path).decode())
        if not isinstance(saved, dict) or saved.get("version") != EVALUATION_FILE_VERSION:
            raise ValueError(f"its version is not {EVALUATION_FILE_VERSION}")
        sections = saved["sections"]
        if not isinstance(sections, list):
            raise ValueError("`sections` must be a list")
        return [_parse_section(section) for section in sections]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path.name} is not a valid evaluation: {error}; evaluate the run again"
        ) from None


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
