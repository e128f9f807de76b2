"""From what a user wrote to a finished run: a program or an experiment file → a task → a run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.blueprint import Blueprint, parse, read
from neural.core.diagnostics import Source
from neural.core.registry import UnknownName
from neural.core.settings import read_settings, resolved, restored
from neural.modules.late import torch
from neural.standard import CATALOGUE
from neural.tasks import registry as tasks
from neural.tasks.experiment import Experiment, read_experiment
from neural.tasks.supervised import Supervised, SupervisedSettings
from neural.tasks.task import Task, TaskError
from neural.tracking.environment import environment
from neural.tracking.measures import registry as measures
from neural.tracking.run import Run
from neural.tracking.sinks import registry as sinks
from neural.tracking.trouble import RunError
from neural.training.engine import Outcome, Progress
from neural.training.engine import fit as train
from neural.training.rates import optimizer_of
from neural.training.state import of_this_network, weights_in

if TYPE_CHECKING:
    from torch import nn

    from neural.tracking.checkpoint import Checkpoint

RUNS = Path("runs")
"""Where run folders are made unless somebody says otherwise."""


def task_of(path: str | Path, changes: Sequence[str] = (), *, network: str | None = None) -> Task:
    """The task that a file describes: a `.neural` program, or an experiment in YAML.

    `changes` are texts such as `training.learning_rate=3e-4`. SettingsError or TaskError says all that is wrong.
    """
    path = Path(path)
    source = source_of(path)
    if path.suffix.lower() in (".yaml", ".yml", ".json"):
        experiment = read_experiment(source, changes, choose=_settings_of)
    else:
        given = [f"network={_quoted(path.name)}", *([f"network_name={network}"] if network else [])]
        experiment = read_settings(SupervisedSettings, None, [*given, *changes])
    return made(experiment, path.parent)


def source_of(path: Path) -> Source:
    """The text of a file; TaskError where there is none."""
    try:
        return read(path)
    except OSError as problem:
        raise TaskError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None


def task_of_run(run: Run, changes: Sequence[str] = ()) -> Task:
    """The task of a run, made again from its folder."""
    experiment = experiment_of(run)
    if changes:
        import json

        source = Source(f"{run.name}/settings.json", json.dumps(resolved(experiment)))
        before, experiment = experiment, read_settings(type(experiment), source, changes)
        for key in sorted(experiment.set_at_start):
            if getattr(before, key) != getattr(experiment, key):
                raise TaskError(f"`{key}` cannot change in a resumed run; start a new run with it")
    return made(experiment, Path(str(run.environment.get("folder", "."))))


def experiment_of(run: Run) -> Experiment:
    """The settings that a run was begun with."""
    try:
        kind = _settings_of(str(run.settings.get("task", "")))
    except UnknownName as unknown:
        raise RunError(f"{run.path}: {unknown}") from None
    settings = run.settings
    training = settings.get("training")
    is_older = "split_seed" in kind.model_fields and "split_seed" not in settings
    if is_older and isinstance(training, dict):
        # a run of before this key was split by the seed of its training
        settings = {**settings, "split_seed": training.get("seed", 0)}
    return restored(kind, settings, f"{run.name}/settings.json")


def made(experiment: Experiment, folder: Path) -> Task:
    """The task of an experiment, its data read and checked."""
    task = tasks.get(experiment.task)(experiment, folder, CATALOGUE)
    check_names(task.experiment)
    return task


def check_names(experiment: Experiment) -> None:
    """What cannot be trained or tracked as asked is said before anything is written: TaskError or UnknownName."""
    optimizer_of(experiment.training)
    for name in experiment.tracking.sinks:
        sinks.get(name)
    for name in experiment.tracking.measures or ():
        measures.get(name)


def new_run(task: Task, root: Path = RUNS, **facts: Any) -> Run:
    """A folder for a task that is about to be trained."""
    settings = task.experiment
    name = settings.name or settings.task
    about = {**environment(), **facts}
    return Run.create(root, name, settings=resolved(settings), program=task.program, environment=about)


@dataclass(frozen=True)
class Fitted:
    """What `neural.fit` gives."""

    run: Run
    outcome: Outcome
    model: nn.Module
    """With the best weights."""


def fit(
    network: Blueprint | str | Path, data: Any = None, settings: Mapping[str, Any] | None = None, *,
    runs: str | Path = RUNS, tell: Callable[[Progress], None] = lambda progress: None,
) -> Fitted:  # fmt: skip
    """Train a network on data: a checked network, a program's text or its path; arrays, a path or a data set's name.

        neural.fit("net.neural", (x, y), {"training": {"steps": 500}})

    `settings` has the keys of an experiment file. Leaves a run folder behind.
    """
    folder = Path()
    if isinstance(network, Blueprint):
        network = network.source.text
    elif "{" not in str(network):
        folder, network = Path(network).parent, Path(network).name
    said: dict[str, Any] = {"task": "supervised", "network": str(network), **(settings or {})}
    named = isinstance(data, str | Path)
    if named:
        said["data"] = str(data)
    experiment = restored(SupervisedSettings, said, "settings")
    task = Supervised(experiment, folder, CATALOGUE, data=None if named else data)
    check_names(task.experiment)
    run = new_run(task, Path(runs))
    outcome = train(task, run, tell=tell)
    return Fitted(Run.open(run.path), outcome, best_model(run.path, task))


def best_model(path: str | Path, task: Task | None = None) -> nn.Module:
    """The network of a run with the weights that scored best, or the newest where nothing was scored; ready to use."""
    run = Run.open(path)
    checkpoint = run.restore("best") or run.restore()
    if checkpoint is None:
        raise RunError(f"{run.path} has no checkpoint yet")
    return model_at(run, checkpoint, task)


def model_at(run: Run, checkpoint: Checkpoint, task: Task | None = None) -> nn.Module:
    """The network of a run with the weights of a checkpoint, ready to use."""
    weights = sum(one.numel() for one in weights_in(checkpoint).values())
    model = task.build() if task is not None else built(run, weights)
    with of_this_network(checkpoint, run.path):
        load_weights(model, checkpoint)
    return model.eval()


def load_weights(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Those of a checkpoint, averaged where an average is kept; RuntimeError of torch where they do not fit."""
    model.load_state_dict(weights_in(checkpoint))
    # an average is of what is learned; what else a model remembers is as it was
    model.load_state_dict(weights_in(checkpoint, "average."), strict=False)


def built(run: Run, weights: int) -> nn.Module:
    """The network of a run, untrained; without its data where that can be: they may be gone, or never were a file.

    `weights` is how many numbers there are for it. One that wants more is refused before there is memory for it: the
    folder may come from anybody.
    """
    if run.program is not None:
        plan = parse(run.program, name=str(run.path / "program.neural"), network=run.network_name)
        _no_larger(run, plan.parameters, weights)
        return plan.build()
    experiment = experiment_of(run)
    kind = tasks.get(experiment.task)
    with torch.device("meta"):   # its sizes, without memory
        model = kind.without_data(experiment, CATALOGUE)
    if model is None:
        return task_of_run(run).build()
    _no_larger(run, sum(one.numel() for one in model.parameters()), weights)
    model = kind.without_data(experiment, CATALOGUE)
    assert model is not None
    return model


def _no_larger(run: Run, parameters: int, weights: int) -> None:
    if parameters > weights:
        raise RunError(f"{run.path}: its network has {parameters:,} parameters, its checkpoint {weights:,} numbers")


def open_run(path: str | Path) -> Run:
    """A run folder, for reading; also while it is written."""
    return Run.open(path)


def find_run(name: str | None, root: Path = RUNS) -> Path:
    """A run by its path, its folder's name or a part of it; the newest without a name."""
    if name is not None and Path(name).is_dir():
        return Path(name)
    found = sorted(one for one in root.glob("*") if (one / "status.json").exists()) if root.is_dir() else []
    fitting = [one for one in found if name is None or name in one.name]
    exact = [one for one in fitting if one.name == name]
    if exact or (name is None and fitting):
        return (exact or fitting)[-1]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise RunError(f"`{name}` fits several runs: {_newest(fitting)}; say more of its name")
    if name is not None and any(name in one.parent.name for one in root.glob("*/trials.json")):
        raise RunError(f"`{name}` is a sweep: name one of its runs by its path, which `neural show {name}` tells")
    way_out = f"; there are {_newest(found)}" if found else ": `neural train FILE` makes one, --runs looks elsewhere"
    raise RunError(f"there is no run{f' `{name}`' if name else ''} in {root}{way_out}")


def _newest(found: list[Path]) -> str:
    """The names of the last few."""
    hidden = len(found) - 5
    return ", ".join(one.name for one in found[-5:]) + (f" and {hidden} older" if hidden > 0 else "")


def _settings_of(name: str) -> type[Experiment]:
    return tasks.get(name).Settings


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


