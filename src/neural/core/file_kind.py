"""Kind of a file, read from its top-level keys: program, experiment, sweep or study.

A program is a network in the `.neural` language; the others are YAML files of settings for one
training (experiment), a grid of trainings (sweep), or trainings over texts and seeds (study).
"""

from __future__ import annotations

import re
from pathlib import Path

from neural.core.files import read_text_prefix

MAX_READ_BYTES = 100_000
"""Only the first bytes of a file are read to find out its kind."""
STUDY_ONLY_KEYS = {"data", "every", "generation", "own"}
"""Keys that a study may have and a sweep may not."""


def detect_kind(path: Path) -> str | None:
    """`program`, `experiment`, `sweep` or `study`.

    None if the kind is not clear or the file cannot be read.
    """
    try:
        text = read_text_prefix(path, MAX_READ_BYTES)
    except OSError:
        return None
    if path.suffix.lower() not in (".yaml", ".yml"):
        return "program" if re.search(r"^\s*network\s+\w+\s*\{", text, re.M) else None
    from neural.core.yaml_positions import iter_top_level_keys  # slow; programs do not need it

    keys = set(iter_top_level_keys(text))
    if "task" in keys:
        return "experiment"
    if "experiment" in keys:
        return "study" if keys & STUDY_ONLY_KEYS else "sweep"
    return None
