"""Kind of a file, read from its top-level keys: program, experiment, sweep or study.

A verb (subcommand of `neural`) that gets a file of another kind names the verb for it,
instead of reporting every key as unknown.
"""

from __future__ import annotations

import re
from pathlib import Path

from neural.cli._errors import UserError
from neural.core.files import read_text_prefix

MAX_READ_BYTES = 100_000
"""Bytes read to find out the kind."""
VERBS = {"experiment": "train", "program": "train", "sweep": "sweep", "study": "study"}
"""Verb that trains a file, by kind."""
STUDY_ONLY_KEYS = {"data", "every", "generation", "own"}
"""Keys that a study may have and a sweep may not."""
SOURCE_SUFFIXES = (".neural", ".yaml", ".yml", ".json")
"""Suffixes of files whose errors are reported by their reader, whatever they contain."""


def detect_kind(path: Path) -> str | None:
    """A key of `VERBS`; None if the kind is not clear or the file cannot be read."""
    from neural.core.yaml_positions import iter_top_level_keys

    try:
        text = read_text_prefix(path, MAX_READ_BYTES)
    except OSError:
        return None
    if path.suffix.lower() not in (".yaml", ".yml"):
        return "program" if re.search(r"^\s*network\s+\w+\s*\{", text, re.M) else None
    keys = set(iter_top_level_keys(text))
    if "task" in keys:
        return "experiment"
    if "experiment" in keys:
        return "study" if keys & STUDY_ONLY_KEYS else "sweep"
    return None


def require_kind(file: str, *kinds: str) -> None:
    """Raise UserError for a folder or a file that is clearly of another kind than `kinds`.

    All other errors, such as a missing file, are left to the function that reads it.
    """
    path = Path(file)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError:  # not a valid file name
        return
    if is_folder:
        is_run = (path / "status.json").exists()
        suggestion = f"`neural train --resume {file}` resumes it" if is_run else "name a file in it"
        raise UserError(f"{file} is a {'run ' * is_run}folder: {suggestion}")
    kind = detect_kind(path)
    if kind in kinds or not exists:
        return
    if kind is not None:
        suggestion = f"`neural {VERBS[kind]} {file}` trains it"
        if kinds[0] in ("sweep", "study") and VERBS[kind] == "train":
            suggestion += f"; a {kinds[0]} is a file that names it, `experiment: {path.name}`"
        raise UserError(f"{file} is {'an' if kind == 'experiment' else 'a'} {kind}: {suggestion}")
    if "program" in kinds and path.suffix.lower() not in SOURCE_SUFFIXES:
        raise UserError(f"{file} is not a program: it has no line `network NAME {{`")
