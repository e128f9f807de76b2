"""Train: called by `neural train`, by `neural.fit` and by the trials of a sweep.

An experiment is a file of settings with a task, such as `language_model`, and a `.neural` program
of the network. Samples are texts that a language model generates at every validation (samples.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.diagnostics import SourceText
from neural.core.settings import dump_settings, flatten_settings, load_settings, read_settings
from neural.optim.catalogue import CATALOGUE
from neural.runs.environment import collect_environment
from neural.runs.find import DEFAULT_RUNS_DIR, find_run
from neural.runs.run import Run
from neural.tasks.supervised.task import Supervised, SupervisedSettings
from neural.tasks.task import Task
from neural.training.engine import TrainingProgress, TrainingResult
from neural.training.engine import fit as fit_task
from neural.training.launch import find_previous_attempt, launch_id
from neural.training.process_group import join_group
from neural.workflows.load import Blueprint
from neural.workflows.load_model import load_best_model
from neural.workflows.load_task import check_registered_names, load_task, restore_task

if TYPE_CHECKING:
    from torch import nn

    from neural.workflows.samples import SampleEvaluator

OnStart = Callable[[Run, Task, bool], None]
"""Called once the run folder is open, with the run, its task and whether it resumes."""
OnStep = Callable[[TrainingProgress], None]
OnWarning = Callable[[str], None]


def _ignore(*args: object) -> None:
    pass


@dataclass(frozen=True)
class TrainRequest:
    """What to train. Plain data, so that it can be sent to another process."""

    file: str | None = None
    """A `.neural` program or an experiment in YAML; None resumes a run."""
    overrides: tuple[str, ...] = ()
    """Changed settings, each `training.learning_rate=3e-4`."""
    network: str | None = None
    """Which network, if the program has several."""
    resume: str | None = None
    """A run's path or name; None is the newest."""
    samples: str | None = None
    """Settings of texts that are generated and evaluated at every validation, as YAML."""
    runs: str = str(DEFAULT_RUNS_DIR)
    """The folder of the runs."""


@dataclass(frozen=True)
class PreparedTraining:
    """A task whose data and settings were checked; nothing is written yet."""

    task: Task
    runs: Path
    """Folder in which a run folder is created."""
    resumed_path: Path | None = None
    """Folder of the run to resume; None for a new run."""
    samples: SampleEvaluator | None = None


def prepare_training(request: TrainRequest) -> PreparedTraining:
    """Load and check what training needs. Raises SettingsError, TaskError or RunError."""
    runs = Path(request.runs)
    resumed_path = find_run(request.resume or None, runs) if request.file is None else None
    if resumed_path is not None:
        run = Run.open(resumed_path)
        task = restore_task(run, request.overrides)
        saved_samples = run.environment.get("samples")
    else:
        assert request.file is not None
        folder = Path(request.file).parent
        overrides = [_resolve_typed_path(override, folder) for override in request.overrides]
        task, saved_samples = load_task(request.file, overrides, network=request.network), None
    evaluator = _create_sample_evaluator(task, request.samples, saved_samples)
    return PreparedTraining(task, runs, resumed_path, evaluator)


def train(
    prepared: PreparedTraining,
    *,
    on_start: OnStart = _ignore,
    on_step: OnStep = _ignore,
    on_warning: OnWarning = _ignore,
) -> tuple[Run | None, TrainingResult]:
    """Train, or resume, until done or stopped. The run is None in all processes but the first."""
    task = prepared.task
    with join_group(task.experiment.training.device) as group:
        run = _open_run(prepared) if group.is_first else None
        samples = None
        if run is not None:
            on_start(run, task, prepared.resumed_path is not None)
            samples = prepared.samples and prepared.samples.record_to(run)
        result = fit_task(
            task, run, group=group, on_step=on_step, extra_metrics=samples, on_warning=on_warning
        )
    return run, result


def _open_run(prepared: PreparedTraining) -> Run:
    """Create a run folder, or reopen the one to resume.

    If torchrun restarted this process after a crash, that is the folder of the attempt before.
    """
    path = prepared.resumed_path or find_previous_attempt(prepared.runs)
    if path is not None:
        return Run.reopen(path)
    samples = prepared.samples
    extra = {"samples": dump_settings(samples.settings)} if samples is not None else {}
    return create_run(prepared.task, prepared.runs, launch=launch_id(), **extra)


def create_run(task: Task, root: Path = DEFAULT_RUNS_DIR, **environment: Any) -> Run:
    """Create the run folder of a task; `environment` is saved with versions and machine."""
    settings = task.experiment
    return Run.create(
        root,
        settings.name or settings.task,
        settings=dump_settings(settings),
        program=task.program,
        environment={**collect_environment(), **environment},
    )


def _create_sample_evaluator(
    task: Task, requested: str | None, saved: Mapping[str, Any] | None
) -> SampleEvaluator | None:
    """Create an evaluator with the `requested` settings (YAML), else with those `saved` in a run.

    None without either. TaskError if the task generates no text.
    """
    if requested is None and saved is None:
        return None
    from neural.workflows.samples import SampleEvaluator, SampleSettings  # needs the analyses

    settings = (
        load_settings(SampleSettings, saved)
        if requested is None
        else read_settings(SampleSettings, SourceText("--samples", requested))
    )
    return SampleEvaluator(task, settings)


def _resolve_typed_path(override: str, folder: Path) -> str:
    """Make the path in `data=…` or `network=…`, typed on the command line, absolute.

    Unchanged if the path exists relative to `folder`, that of the experiment, or does not exist.
    """
    key, _, value = override.partition("=")
    # `digits` is the name of a data set, not a path
    if key.strip() not in ("data", "network") or not set("./~") & set(value):
        return override
    try:
        typed_path = Path(value.strip()).expanduser()
        is_elsewhere = typed_path.exists() and not (folder / typed_path).exists()
    except (OSError, RuntimeError):  # not a valid file name, or no such home folder
        return override
    return f'{key}="{typed_path.absolute()}"' if is_elsewhere else override


@dataclass(frozen=True)
class FitResult:
    """Result of `neural.fit`."""

    run: Run
    result: TrainingResult
    model: nn.Module
    """The model with its best weights, in evaluation mode."""


def fit(
    network: Blueprint | str | Path,
    data: Any = None,
    settings: Mapping[str, Any] | None = None,
    *,
    runs: str | Path = DEFAULT_RUNS_DIR,
    samples: Mapping[str, Any] | None = None,
    on_step: OnStep = _ignore,
    on_warning: OnWarning = _ignore,
) -> FitResult:
    """Train a network on data and keep a run folder.

        neural.fit("net.neural", (x, y), {"training": {"steps": 500}})

    `network` is a checked network, a program's text or its path, or an experiment file in YAML
    (then `data` and `settings` override its keys). `data` is arrays, a path or the name of a data
    set. `settings` has the keys of an experiment file, `samples` those of `neural train --samples`.
    """
    path = None if isinstance(network, Blueprint) or "{" in str(network) else Path(network)
    keys: dict[str, Any] = dict(settings or {})
    is_path_or_name = isinstance(data, str | Path)
    if is_path_or_name:
        keys["data"] = str(data)
    if path is not None and path.suffix.lower() in (".yaml", ".yml"):
        if data is not None and not is_path_or_name:
            raise TypeError("an experiment file reads its data itself: pass a path or a name")
        values = flatten_settings(keys)  # {"training.steps": 500}
        overrides = [f"{key}={json.dumps(value)}" for key, value in values.items()]
        task = load_task(path, overrides)
    else:
        folder = Path() if path is None else path.parent
        text = network.source.text if isinstance(network, Blueprint) else str(network)
        keys = {"task": "supervised", "network": text if path is None else path.name, **keys}
        experiment = load_settings(SupervisedSettings, keys, "settings")
        task = Supervised(experiment, folder, CATALOGUE, data=None if is_path_or_name else data)
        check_registered_names(task)
    evaluator = _create_sample_evaluator(task, None, samples)
    prepared = PreparedTraining(task, Path(runs), samples=evaluator)
    run, result = train(prepared, on_step=on_step, on_warning=on_warning)
    assert run is not None, "neural.fit runs in one process"
    return FitResult(Run.open(run.path), result, load_best_model(run.path, task))
