"""Guess the experiment of a data file or folder: `neural train novel.txt`.

Every task is asked (`Task.guess`), also those of other packages; the most certain answer wins.
"""

from __future__ import annotations

from pathlib import Path

from neural.core.errors import TaskError
from neural.core.experiment_guess import ExperimentGuess
from neural.runs.find import RUN_MARKER, SWEEP_MARKER
from neural.tasks import registry as tasks
from neural.workflows.file_kind import detect_kind

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


def guess_experiment(path: Path) -> ExperimentGuess:
    """The most certain guess of all tasks; its `data` is the path as given.

    Raises TaskError if no task knows such data, or if the data is broken.
    """
    path = path if path.name else path.resolve()  # `.` has no name for the run
    guesses, errors = list[ExperimentGuess](), list[TaskError]()
    for name in tasks.names():
        try:
            guess = tasks.get(name).guess(path)
        except TaskError as error:
            errors.append(error)
            continue
        guesses += [guess] if guess is not None else []
    if errors and not guesses:
        raise errors[0]
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
