"""Paths and small files of a run folder: find it, publish a new one, verify checksums.

settings.json holds the settings of the experiment, program.neural the source text of the network,
environment.json versions and machine, rows.sqlite everything that is measured (store.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from neural.core.files import read_small_file
from neural.core.json_values import parse_json
from neural.core.names import suggest_name
from neural.core.platform_support import rename_folder, sync_folder
from neural.runs.errors import RunError, translate_errors
from neural.runs.status import RunStatus, parse_status
from neural.runs.store import RunStore

ROWS_FILE, CHECKPOINTS_DIR, STATUS_FILE = "rows.sqlite", "checkpoints", "status.json"
CHECKSUMMED_FILES = ("settings.json", "program.neural", "environment.json")
"""Files whose checksums are in rows.sqlite."""
RUN_ID_KEY = "id"
"""Key of a run's random id in the header of rows.sqlite. All copies of a run have the same id."""
PRIVATE_FOLDER_MODE = 0o700
"""Mode of a folder whose settings or command line had secrets: for its owner only."""
MAX_NAME_BYTES = 200
"""Limit of a folder name; file systems allow 255 bytes."""
MAX_SQLITE_PATH_BYTES = 500
"""Limit of the paths of rows.sqlite and the files beside it; SQLite allows 512 bytes."""


def find_run_folder(path: Path | str) -> Path:
    """The absolute path if it is a run folder; else a RunError that says what is there."""
    path = Path(path).absolute()
    with translate_errors(f"{path} cannot be read"):
        if (path / ROWS_FILE).is_file():
            if link := find_escaping_link(path, path.resolve()):
                raise RunError(f"{path}: {link} is a link out of the folder; it is not followed")
            return path
        if path.is_dir():
            run_names = sorted(
                rows_path.parent.name for rows_path in path.glob(f"[!.]*/{ROWS_FILE}")
            )
            hint = (
                f"; it contains runs, the last one is {path / run_names[-1]}" if run_names else ""
            )
            raise RunError(f"{path} is not a run folder: it has no {ROWS_FILE}{hint}")
        if path.exists():
            raise RunError(f"{path} is a file; a run is a folder")
        siblings = path.parent.glob(f"[!.]*/{ROWS_FILE}") if path.parent.is_dir() else ()
        suggestion = suggest_name(path.name, [rows_path.parent.name for rows_path in siblings])
    raise RunError(f"there is no run {path}" + (f"; {suggestion}" if suggestion else ""))


def check_paths(root: Path, name: str, texts: Iterable[str]) -> None:
    """RunError if the run `name` in the folder `root` could not be read again.

    `texts` are the JSON files of the run, which contain the paths of data and program.
    """
    for text in (str(root), *texts):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise RunError(
                f"no run can be created in {root}: the path of the folder or of the data is not "
                "UTF-8, which safetensors and JSON need; rename it"
            ) from None
    folder_name = f"2000-01-01_00-00-00_{name}".encode()[:MAX_NAME_BYTES]
    path_bytes = len(b"/".join((os.fsencode(root), folder_name, b"rows.sqlite-journal")))
    if path_bytes > MAX_SQLITE_PATH_BYTES:
        raise RunError(
            f"no run can be created in {root}: the path of its files would have {path_bytes} "
            f"bytes, SQLite allows {MAX_SQLITE_PATH_BYTES}; choose another --runs folder"
        )


def publish_folder(staging: Path, root: Path, name: str, timestamp: float) -> Path:
    """Rename the complete folder `staging` to `root/<time>_<name>`; returns the new path.

    If the name is taken, a number is added; also if it differs only in case, so that the runs can be
    copied to Windows and macOS. `timestamp` is a Unix time.

    Renaming onto an existing folder fails unless that is empty: no other run is ever replaced.
    """
    safe_name = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    time_text = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(timestamp))
    stem = f"{time_text}_{safe_name}".encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    stem = stem.rstrip(".")  # Windows drops a dot at the end
    taken_names = {path.name.casefold() for path in root.iterdir()}
    number = 1
    while True:
        path = root / (stem if number == 1 else f"{stem}-{number}")
        if path.name.casefold() not in taken_names and not path.exists():
            try:
                rename_folder(staging, path)
            except OSError:
                if not path.exists():  # else another process took the name: try the next number
                    raise
            else:
                sync_folder(root)
                return path
        number += 1


def find_escaping_link(path: Path, root: Path) -> str:
    """Name of the first symbolic link in a run folder that points outside `root`; "" if none.

    A run folder may come from anybody: such a link could expose other files of the reader.
    """
    if _is_escaping_link(path, root):
        return path.name
    for folder in (path, path / CHECKPOINTS_DIR):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink() and _is_escaping_link(Path(entry.path), root):
                        return entry.name
        except OSError:
            continue  # reading the folder will report the reason
    return ""


def _is_escaping_link(path: Path, root: Path) -> bool:
    # os.path.realpath, because Path.resolve raises on a link that points to itself
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root)


def load_status(path: Path) -> RunStatus:
    """The present status of the run: "lost" if status.json is missing or its process is gone."""
    return parse_status(read_text(path / STATUS_FILE) or "")


def sha256_text(text: str | None) -> str:
    """SHA-256 of a text; "" for None."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def checksum_key(file: str) -> str:
    """Key of a file's checksum in the header of rows.sqlite (`RunStore.header_value`)."""
    return f"sha256 {file}"


def verify_checksums(path: Path, store: RunStore) -> None:
    """RunError if a file differs from what `Run` wrote: training must not resume from it."""
    for file in CHECKSUMMED_FILES:
        expected = store.header_value(checksum_key(file))  # None: the file was never written
        # two checksums while `Run.replace_settings` replaces the file: the old and the new one
        if expected is not None and sha256_text(read_text(path / file)) not in expected.split(" "):
            raise RunError(
                f"{path / file} is damaged: its checksum is wrong, so the run cannot resume. "
                "Restore a copy (to change settings, use `--set`)"
            )


def read_text(path: Path) -> str | None:
    """Read a text file; None if it does not exist."""
    with translate_errors(f"{path} cannot be read"):
        try:
            return read_small_file(path).decode()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise RunError(f"{path} is damaged: it is not text") from error


def read_json_file(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if the file does not exist."""
    try:
        document = parse_json(read_text(path) or "{}")
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}") from error
    if not isinstance(document, dict):
        raise RunError(f"{path} is damaged: it is not a JSON object")
    return document


def format_json(value: Mapping[str, Any]) -> str:
    """Text of a JSON file: indented, non-ASCII characters as they are."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
