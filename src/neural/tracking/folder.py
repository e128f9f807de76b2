"""The folder around a run: finding one, making one appear whole, and its small files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neural.core.files import read_small, sync_folder
from neural.core.names import did_you_mean
from neural.core.plain_json import read_json
from neural.tracking.status import Status, read_status
from neural.tracking.store import Store
from neural.tracking.trouble import RunError, in_words

ROWS, CHECKPOINTS, STATUS = "rows.sqlite", "checkpoints", "status.json"
WRITTEN_ONCE = ("settings.json", "program.neural", "environment.json")
LONGEST = 200
"""Bytes of a folder's name; file systems stop at 255."""


def run_folder(path: Path | str) -> Path:
    """The path, if there is a run; RunError says what is there instead."""
    path = Path(path).absolute()
    with in_words(f"{path} cannot be read"):
        if (path / ROWS).is_file():
            if leaves := leaving(path, path.resolve()):
                raise RunError(f"{path}: {leaves} is a link out of the folder; it is not followed")
            return path
        if path.is_dir():
            inside = sorted(one.parent.name for one in path.glob(f"[!.]*/{ROWS}"))
            more = f"; there are runs in it, the last one is {path / inside[-1]}" if inside else ""
            raise RunError(f"{path} is not a run folder: it has no {ROWS}{more}")
        if path.exists():
            raise RunError(f"{path} is a file; a run is a folder")
        near = path.parent.glob(f"[!.]*/{ROWS}") if path.parent.is_dir() else ()
        guess = did_you_mean(path.name, [one.parent.name for one in near])
    raise RunError(f"there is no run {path}" + (f"; {guess}" if guess else ""))


def put_in_place(aside: Path, root: Path, name: str, when: float) -> Path:
    """Give a finished folder its name, one that no other has: a folder that is not empty is never replaced."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(when))
    stem = f"{stamp}_{plain}".encode()[:LONGEST].decode(errors="ignore")
    number = 1
    while True:
        path = root / (stem if number == 1 else f"{stem}-{number}")
        if not path.exists():
            try:
                aside.rename(path)
            except OSError:
                if not path.exists():   # else somebody was faster: the next number
                    raise
            else:
                sync_folder(root)
                return path
        number += 1


def leaving(path: Path, root: Path) -> str:
    """The first thing in a run that is a link to outside of the root; nothing if all stays inside."""
    if _leads_out(path, root):
        return path.name
    for folder in (path, path / CHECKPOINTS):
        try:
            with os.scandir(folder) as inside:
                for one in inside:
                    if _leads_out(Path(one.path), root):
                        return one.name
        except OSError:
            continue   # reading it will say what is wrong
    return ""


def _leads_out(path: Path, root: Path) -> bool:
    """Whether it is a link to outside; one that leads to itself leads nowhere, which `Path.resolve` takes badly."""
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root)


def status_of(path: Path, store: Store | None = None) -> Status:
    """The status of the run as of now; version 1 kept it among the rows."""
    said = text_of(path / STATUS)
    if said is None:
        said = (store or Store(path / ROWS)).meta("status") or ""
    return read_status(said)


def sum_of(text: str | None) -> str:
    """What tells a text from one with another bit."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def key_of_sum(file: str) -> str:
    """Where the rows keep a file's sum, among what they say of themselves."""
    return f"sha256 {file}"


def check_sums(path: Path, store: Store) -> None:
    """RunError where a file is not as `Run` wrote it: no training goes on from something else."""
    for file in WRITTEN_ONCE:
        known = store.meta(key_of_sum(file))   # folders of before have none
        # two sums while `Run.replace_settings` replaces the file: the old one and the new one
        if known is not None and sum_of(text_of(path / file)) not in known.split(" "):
            raise RunError(
                f"{path / file} is damaged: its sum is wrong, and the run cannot go on as it was begun. Put a copy "
                "back (settings are changed by `--set`)"
            )


def text_of(path: Path) -> str | None:
    """The text of a file, or None if there is none."""
    with in_words(f"{path} cannot be read"):
        try:
            return read_small(path).decode()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise RunError(f"{path} is damaged: it is not text") from error


def json_of(path: Path) -> dict[str, Any]:
    """What a JSON file says; nothing if there is none."""
    try:
        found = read_json(text_of(path) or "{}")
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}") from error
    if not isinstance(found, dict):
        raise RunError(f"{path} is damaged: it is not a table")
    return found


def as_json(value: Mapping[str, Any]) -> str:
    """The text of a JSON file."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
