"""Refuse a file of the wrong kind: program, experiment, sweep or study.

A program is a network in the `.neural` language; the others are YAML files of settings for one
training (experiment), a grid of trainings (sweep), or trainings over texts and seeds (study). A
command that gets a file of another kind names the command for it, instead of reporting every key
as unknown.
"""

from __future__ import annotations

from pathlib import Path

from neural.core.errors import NeuralError
from neural.core.file_kind import detect_kind

COMMANDS = {"experiment": "train", "program": "train", "sweep": "sweep", "study": "study"}
"""Command that trains a file, by kind."""
SOURCE_SUFFIXES = (".neural", ".yaml", ".yml", ".json")
"""A file of unknown kind with such a suffix is not refused: its reader reports the errors."""


def require_kind(file: str, *kinds: str) -> None:
    """Raise NeuralError for a folder or a file that is clearly of another kind than `kinds`.

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
        raise NeuralError(f"{file} is a {'run ' * is_run}folder: {suggestion}")
    kind = detect_kind(path)
    if kind in kinds or not exists:
        return
    if kind is not None:
        suggestion = f"`neural {COMMANDS[kind]} {file}` trains it"
        if kinds[0] in ("sweep", "study") and COMMANDS[kind] == "train":
            suggestion += f"; a {kinds[0]} is a file that names it, `experiment: {path.name}`"
        raise NeuralError(f"{file} is {'an' if kind == 'experiment' else 'a'} {kind}: {suggestion}")
    if "program" in kinds and path.suffix.lower() not in SOURCE_SUFFIXES:
        raise NeuralError(f"{file} is not a program: it has no line `network NAME {{`")
