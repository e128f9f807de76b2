"""One folder per class: `cats/…`, `dogs/…`, or the same below `train/` and `valid/`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural.tasks.task import TaskError

VALID = ("valid", "val", "validation", "test")


@dataclass(frozen=True)
class Labelled:
    """Files with a class number each."""

    files: tuple[Path, ...]
    y: np.ndarray


@dataclass(frozen=True)
class ClassFolders:
    """The files of a folder, in the order of their names."""

    classes: tuple[str, ...]
    train: Labelled
    valid: Labelled | None


def holds(folder: Path, suffixes: Iterable[str]) -> bool:
    """Whether a folder has subfolders with such files."""
    return any(file.suffix.lower() in suffixes for depth in ("*/*", "*/*/*") for file in folder.glob(depth))


def class_folders(folder: Path, suffixes: Iterable[str]) -> ClassFolders:
    """Which file is of which class; TaskError where that cannot be seen."""
    parts = {one.name: one for one in _subfolders(folder)}
    held = next((parts[name] for name in VALID if name in parts), None)
    if "train" not in parts or held is None:
        classes = _classes(folder)
        return ClassFolders(classes, _labelled(folder, classes, suffixes), None)
    classes = _classes(parts["train"])
    unseen = set(_classes(held)) - set(classes)
    if unseen:
        raise TaskError(f"{folder.name}: `{held.name}` has a class that `train` has not: {', '.join(sorted(unseen))}")
    return ClassFolders(classes, _labelled(parts["train"], classes, suffixes), _labelled(held, classes, suffixes))


def _classes(folder: Path) -> tuple[str, ...]:
    return tuple(one.name for one in _subfolders(folder))


def _labelled(folder: Path, classes: tuple[str, ...], suffixes: Iterable[str]) -> Labelled:
    files, y = [], []
    for number, name in enumerate(classes):
        found = sorted(file for file in (folder / name).glob("*") if file.suffix.lower() in suffixes)
        files += found
        y += [number] * len(found)
    if not files:
        raise TaskError(f"{folder.name}: no files that end in {', '.join(suffixes)} in folders of their classes")
    return Labelled(tuple(files), np.array(y, dtype=np.int64))


def _subfolders(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
