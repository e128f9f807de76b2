"""Guess the experiment of a data file or folder: `neural train novel.txt`.

Every task is asked (`Task.guess`), also those of other packages; the most certain answer wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neural.core.diagnostics import DiagnosticCollector, SourceText
from neural.core.errors import TaskError
from neural.core.experiment_guess import ExperimentGuess
from neural.core.file_kind import detect_kind
from neural.core.settings import parse_override
from neural.data.table_cells import SPREADSHEET_SUFFIXES
from neural.runs.find import RUN_MARKER, SWEEP_MARKER
from neural.tasks import registry as tasks

EXPERIMENT_SUFFIXES = (".neural", ".yaml", ".yml", ".json")
"""Suffixes of programs and experiments."""


def is_data(path: Path) -> bool:
    """Whether a path is data rather than a program, an experiment, a run or a sweep."""
    if path.is_dir():
        return not any((path / marker).exists() for marker in (RUN_MARKER, SWEEP_MARKER))
    return (
        path.is_file()
        and path.suffix.lower() not in EXPERIMENT_SUFFIXES
        and detect_kind(path) is None
    )


def guess_experiment(path: Path, overrides: Sequence[str] = ()) -> ExperimentGuess:
    """The most certain guess of all tasks; its `data` is the path as given.

    `overrides` are texts such as `table.target=price`; see `Task.guess`. Raises SettingsError if one
    is wrong, TaskError if no task knows such data, or if the data is broken.
    """
    path = path if path.name else path.resolve()  # `.` has no name for the run
    guesses, errors = list[ExperimentGuess](), list[TaskError]()
    for name in tasks.names():
        try:
            guess = tasks.get(name).guess(path, overrides)
        except TaskError as error:
            errors.append(error)
            continue
        guesses += [guess] if guess is not None else []
    if errors and not guesses:
        raise errors[0]
    if not guesses and path.suffix.lower() in SPREADSHEET_SUFFIXES:
        raise TaskError(f"{path} is a spreadsheet; save it as CSV and name the .csv file")
    if not guesses:
        raise TaskError(
            f"{path}: no task can be guessed from this data. Guessed are a text, a table "
            "(.csv, .tsv, .jsonl, .parquet), a folder of texts, and a folder with one folder of "
            "images or texts per class; for other data write an experiment with a `task`, one of "
            f"{', '.join(tasks.names())}"
        )
    best_guess = max(guesses, key=lambda guess: guess.certainty)
    data = str(best_guess.settings["data"])
    # a bare word could be the name of a data set, such as `digits`
    return best_guess if "/" in data or "." in data else best_guess.with_data(f"./{data}")


def add_overrides(guess: ExperimentGuess, overrides: Sequence[str]) -> ExperimentGuess:
    """The guess with valid overrides (`training.steps=100`) among its settings, to show and save."""
    settings = dict(guess.settings)
    for text in overrides:
        node = parse_override(SourceText("--set", text), DiagnosticCollector())
        if node is not None:
            settings = _merge(settings, node.data)
    return replace(guess, settings=settings)


def _merge(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings are merged, other values replaced."""
    merged = dict(settings)
    for key, value in changes.items():
        old = merged.get(key)
        is_nested = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(old, value) if is_nested else value
    return merged
