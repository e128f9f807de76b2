"""Load the task of a program, of an experiment file, or of a run folder.

A task has data, model, loss and metrics (tasks/task.py). An experiment is its settings, read from a
YAML file; a program is a network in the `.neural` language. A run is the folder of one training.
CATALOGUE holds the layers, losses and optimizers that programs can name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from neural.capture.measures import registry as measures
from neural.core.diagnostics import SourceText
from neural.core.errors import TaskError, describe_os_error
from neural.core.experiment import Experiment
from neural.core.experiment_guess import ExperimentGuess
from neural.core.files import read_source_text, suggest_file
from neural.core.registry import UnknownNameError
from neural.core.settings import (
    dump_settings,
    load_settings,
    read_settings,
    read_settings_by_key,
)
from neural.optim.catalogue import CATALOGUE
from neural.optim.optimizer_factory import create_schedule
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.runs.sinks import registry as sinks
from neural.tasks import registry as tasks
from neural.tasks.task import Task
from neural.training.guess_experiment import add_overrides, guess_experiment, is_data

CAPTURE_TASKS = ("watched", "tracked")
"""`task` of runs of `neural watch` and `neural.track`, whose models are not ours."""


def load_task(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    network: str | None = None,
    on_guess: Callable[[ExperimentGuess], None] = lambda guess: None,
) -> Task:
    """Load the task of a `.neural` program, of an experiment in YAML, or of data.

    `overrides` are texts such as `training.learning_rate=3e-4`; `network` selects one of a
    program's networks by name. The experiment of data is guessed, and `on_guess` called with it.
    Raises SettingsError or TaskError.
    """
    path = Path(path)
    if is_data(path):
        guess = guess_experiment(path, overrides)
        source = SourceText(f"the experiment guessed for {path}", guess.to_yaml())
        unused_overrides = [text for text in overrides if text not in guess.used_overrides]
        experiment = read_experiment(source, unused_overrides)
        on_guess(add_overrides(guess, unused_overrides))
        return create_task(experiment, Path())
    source = read_source(path)
    if path.suffix.lower() in (".yaml", ".yml", ".json"):
        experiment = read_experiment(source, overrides)
    else:
        # a program alone is a supervised experiment with default settings
        from neural.tasks.supervised.task import SupervisedSettings

        network_overrides = [f"network={_quote(path.name)}"]
        network_overrides += [f"network_name={network}"] if network else []
        experiment = read_settings(SupervisedSettings, None, [*network_overrides, *overrides])
    return create_task(experiment, path.parent)


def read_experiment(source: SourceText, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment with the settings class of its task, or raise SettingsError."""
    return read_settings_by_key(Experiment, "task", _settings_class, source, overrides)


def read_source(path: Path) -> SourceText:
    """The text of a program or YAML file. TaskError if it cannot be read."""
    try:
        return read_source_text(path)
    except OSError as error:
        suggestion = suggest_file(path) if isinstance(error, FileNotFoundError) else None
        hint = f"; {suggestion}" if suggestion else ""
        raise TaskError(f"{path}: {describe_os_error(error)}{hint}") from None


def create_task(experiment: Experiment, folder: Path) -> Task:
    """Create the task of an experiment; reads and checks its data.

    Relative paths in the experiment start at `folder`.
    """
    task_class = tasks.get(experiment.task)
    name = tasks.name_of(task_class)  # the experiment may have an alias, such as `lm`
    if name != experiment.task:
        experiment = experiment.model_copy(update={"task": name})
    task = task_class(experiment, folder, CATALOGUE)
    check_registered_names(task)
    return task


def check_registered_names(task: Task) -> None:
    """Check names in the settings: schedule, tracking sinks (W&B, …), measures such as entropy.

    Raises TaskError or UnknownNameError, before a run folder is created.
    """
    experiment = task.experiment
    # built only for its errors: an unknown schedule or a wrong argument
    create_schedule(experiment.training, task.optimizer, steps=1)
    for name in experiment.tracking.sinks:
        sinks.get(name)
    for name in experiment.tracking.measures or ():
        measures.get(name)


def restore_task(run: Run, overrides: Sequence[str] = ()) -> Task:
    """The task of a run, from its saved settings with `overrides`.

    Raises TaskError for an override of a setting that a resumed run cannot change, such as the data
    (`Experiment.new_run_keys`).
    """
    experiment = restore_experiment(run)
    if overrides:
        import json

        source = SourceText(f"{run.name}/settings.json", json.dumps(dump_settings(experiment)))
        saved_experiment = experiment
        experiment = read_settings(type(experiment), source, overrides)
        for key in sorted(experiment.new_run_keys):
            if getattr(saved_experiment, key) != getattr(experiment, key):
                raise TaskError(f"`{key}` cannot change in a resumed run; start a new run with it")
    started_in = Path(str(run.environment.get("folder", ".")))  # relative paths start there
    return create_task(experiment, started_in)


def restore_experiment(run: Run) -> Experiment:
    """The experiment, that is, the settings that a run was started with."""
    try:
        experiment_class = _settings_class(read_task_name(run))
    except UnknownNameError as unknown:
        raise RunError(f"{run.path}: {unknown}") from None
    settings = run.settings
    training = settings.get("training")
    lacks_split_seed = (
        "split_seed" in experiment_class.model_fields and "split_seed" not in settings
    )
    if lacks_split_seed and isinstance(training, dict):
        # an older run: its data were split by the training seed
        settings = {**settings, "split_seed": training.get("seed", 0)}
    return load_settings(experiment_class, settings, f"{run.name}/settings.json")


def read_task_name(run: Run) -> str:
    """Name of the task in the settings of a run; RunError if there is none to run."""
    name = run.settings.get("task")
    if name in CAPTURE_TASKS:
        raise RunError(
            f"{run.path} is the attention of a model from elsewhere: there is no task to run, and "
            "no model in the folder"
        )
    if not isinstance(name, str):
        raise RunError(f"{run.path}: its settings name no task")
    return name


def _settings_class(name: str) -> type[Experiment]:
    """The settings class of the task called `name`, a subclass of Experiment."""
    return tasks.get(name).Settings


def _quote(text: str) -> str:
    """The text as a quoted YAML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
