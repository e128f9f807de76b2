"""One folder per class: `cats/…`, `dogs/…`, or the same below `train/` and `valid/`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural.core.errors import TaskError

VALIDATION_FOLDERS = ("valid", "val", "validation", "test")
"""Names of the folder with validation files, in order of preference."""


@dataclass(frozen=True)
class LabelledFiles:
    """Files, each with a class index."""

    files: tuple[Path, ...]
    labels: np.ndarray
    """Class index of each file."""


@dataclass(frozen=True)
class ClassFolders:
    """Class names and labelled files of a folder; files are sorted by name within a class."""

    classes: tuple[str, ...]
    train: LabelledFiles
    valid: LabelledFiles | None


def has_class_folders(folder: Path, suffixes: Iterable[str]) -> bool:
    """Whether files with these suffixes lie one or two levels below `folder`."""
    return any(
        file.suffix.lower() in suffixes
        for pattern in ("*/*", "*/*/*")
        for file in folder.glob(pattern)
    )


def find_class_folders(folder: Path, suffixes: Iterable[str]) -> ClassFolders:
    """Label every file by its folder. Raises TaskError without files or with unknown classes."""
    subfolders = {subfolder.name: subfolder for subfolder in _list_subfolders(folder)}
    valid_folder = next(
        (subfolders[name] for name in VALIDATION_FOLDERS if name in subfolders), None
    )
    if "train" not in subfolders or valid_folder is None:
        classes = _list_classes(folder)
        return ClassFolders(classes, _label_files(folder, classes, suffixes), None)
    classes = _list_classes(subfolders["train"])
    unknown_classes = set(_list_classes(valid_folder)) - set(classes)
    if unknown_classes:
        raise TaskError(
            f"{folder.name}: `{valid_folder.name}` has classes that `train` does not have: "
            f"{', '.join(sorted(unknown_classes))}"
        )
    return ClassFolders(
        classes,
        _label_files(subfolders["train"], classes, suffixes),
        _label_files(valid_folder, classes, suffixes),
    )


def _list_classes(folder: Path) -> tuple[str, ...]:
    return tuple(subfolder.name for subfolder in _list_subfolders(folder))


def _label_files(folder: Path, classes: tuple[str, ...], suffixes: Iterable[str]) -> LabelledFiles:
    files, labels = [], []
    for class_index, name in enumerate(classes):
        class_files = sorted(
            file
            for file in (folder / name).glob("*")
            if file.suffix.lower() in suffixes and file.is_file()
        )
        files += class_files
        labels += [class_index] * len(class_files)
    if not files:
        raise TaskError(
            f"{folder.name}: no {', '.join(suffixes)} files in class folders; "
            "make one subfolder per class"
        )
    return LabelledFiles(tuple(files), np.array(labels, dtype=np.int64))


def _list_subfolders(folder: Path) -> list[Path]:
    return sorted(
        entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")
    )
