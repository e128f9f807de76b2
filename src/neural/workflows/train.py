"""Train: called by `neural train`, by `neural.fit` (fit.py) and by the trials of a sweep.

An experiment is a file of settings: its task, such as `language_model`, and the `.neural` program
of its network. A run is the folder of one training: settings, metrics and checkpoints. Samples are
texts that a language model generates at every validation; an evaluator scores them (samples.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.diagnostics import SourceText
from neural.core.experiment_guess import ExperimentGuess
from neural.core.files import expand_home
from neural.core.settings import dump_settings, load_settings, read_settings
from neural.runs.environment import collect_environment
from neural.runs.file_system import describe_network_disk
from neural.runs.find import DEFAULT_RUNS_DIR, find_run
from neural.runs.run import Run
from neural.tasks.task import Task
from neural.training.engine import TrainingProgress, TrainingResult
from neural.training.engine import fit as fit_task
from neural.training.launch import describe_separate_tasks, find_previous_attempt, launch_id
from neural.training.load_task import load_task, restore_task
from neural.training.process_group import join_group
from neural.workflows.train_members import train_members

if TYPE_CHECKING:
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
    """A `.neural` program, an experiment in YAML, or data; None resumes a run."""
    overrides: tuple[str, ...] = ()
    """Changed settings, each `training.learning_rate=3e-4`."""
    network: str | None = None
    """Which network, if the program has several."""
    resume: str | None = None
    """Path or name of the run to resume, if `file` is None; None or "" is the newest run."""
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


def prepare_training(
    request: TrainRequest, *, on_guess: Callable[[ExperimentGuess], None] = _ignore
) -> PreparedTraining:
    """Load and check what training needs. Raises SettingsError, TaskError or RunError.

    `on_guess` is called with the experiment that is guessed if the file is data.
    """
    runs = Path(request.runs)
    resumed_path = None
    if request.file is None:
        resumed_path = find_run(request.resume or None, runs, is_changed=True)
    if resumed_path is not None:
        run = Run.open(resumed_path)
        run.verify_files()  # before they are used: a damaged setting has other messages
        task = restore_task(run, request.overrides)
        saved_samples = run.environment.get("samples")
    else:
        assert request.file is not None
        folder = Path(request.file).parent
        overrides = [resolve_override(override, folder) for override in request.overrides]
        task = load_task(request.file, overrides, network=request.network, on_guess=on_guess)
        saved_samples = None
    evaluator = create_sample_evaluator(task, request.samples, saved_samples)
    return PreparedTraining(task, runs, resumed_path, evaluator)


def train(
    prepared: PreparedTraining,
    *,
    on_start: OnStart = _ignore,
    on_step: OnStep = _ignore,
    on_warning: OnWarning = _ignore,
) -> tuple[Run | None, TrainingResult]:
    """Train, or resume, until done or stopped.

    If several processes train together, only the first has a run; in the others it is None.
    """
    task = prepared.task
    with join_group(task.experiment.training.device) as group:
        run = _open_run(prepared) if group.is_first else None
        samples = None
        if run is not None:
            on_start(run, task, prepared.resumed_path is not None)
            for note in (describe_network_disk(run.path.parent), describe_separate_tasks()):
                if note is not None:
                    on_warning(note)
            samples = prepared.samples and prepared.samples.record_to(run)
        if task.members():
            result = train_members(
                task, run, create_run, group=group, on_step=on_step, on_warning=on_warning
            )
        else:
            result = fit_task(
                task,
                run,
                group=group,
                on_step=on_step,
                extra_metrics=samples,
                on_warning=on_warning,
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


def create_sample_evaluator(
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


def resolve_override(override: str, folder: Path) -> str:
    """Make the path in `data=…` or `network=…`, typed on the command line, absolute."""
    key, _, value = override.partition("=")
    path = find_typed_path(value, folder) if key.strip() in ("data", "network", "test") else None
    return override if path is None else f'{key}="{path}"'


def find_typed_path(value: str, folder: Path) -> Path | None:
    """The absolute path of a file that exists in the current folder and not in `folder`.

    Paths of an experiment are relative to its folder, `folder`; a path that the user types may be
    relative to the current folder. None for all other values.
    """
    if not set("./~") & set(value):  # `digits` is the name of a data set, not a path
        return None
    try:
        typed_path = expand_home(value.strip())
        exists_only_here = typed_path.exists() and not (folder / typed_path).exists()
    except (OSError, RuntimeError):  # not a valid file name, or no such home folder
        return None
    return typed_path.absolute() if exists_only_here else None
