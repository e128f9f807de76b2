"""What a file is, told by its first keys: a verb that is given another kind says so, not what is odd in each line."""

from __future__ import annotations

import re
from pathlib import Path

from neural.cli._mistakes import Refused
from neural.core.files import read_start

ENOUGH = 100_000
"""Bytes to look at."""
VERBS = {"experiment": "train", "program": "train", "sweep": "sweep", "study": "study"}
STUDIED = {"data", "every", "generation", "own"}
"""Keys that a study has and a sweep has not."""
READ = (".neural", ".yaml", ".yml", ".json")
"""Endings of files whose mistakes are worth showing, whatever is in them."""


def kind_of(path: Path) -> str | None:
    """A key of `VERBS`; None where it cannot be told, or the file cannot be read."""
    try:
        text = read_start(path, ENOUGH)
    except OSError:
        return None
    keys = set(re.findall(r"^(\w+)\s*:", text, re.M))
    if path.suffix.lower() not in (".yaml", ".yml"):
        return "program" if re.search(r"^\s*network\s+\w+\s*\{", text, re.M) else None
    if "task" in keys:
        return "experiment"
    if "experiment" in keys:
        return "study" if keys & STUDIED else "sweep"
    return None


def expect(file: str, *wanted: str) -> None:
    """Refuse a file that is plainly of another kind; whatever else is wrong with it is for its reader to say."""
    path, kind = Path(file), kind_of(Path(file))
    try:
        folder, there = path.is_dir(), path.exists()
    except OSError:   # no file can be called so
        return
    if folder:
        run = f"`neural train --resume {file}` goes on with that run" if (path / "status.json").exists() else ""
        raise Refused(f"{file} is a folder: {run or 'name a file in it'}")
    if kind in wanted or not there:
        return
    if kind is not None:
        way_out = f"`neural {VERBS[kind]} {file}` trains it"
        if wanted[0] in ("sweep", "study") and VERBS[kind] == "train":
            way_out += f"; a {wanted[0]} is a file that names it, `experiment: {path.name}`"
        raise Refused(f"{file} is {'an' if kind == 'experiment' else 'a'} {kind}: {way_out}")
    if "program" in wanted and path.suffix.lower() not in READ:
        raise Refused(f"{file} is no program: nowhere in it stands `network NAME {{`")
