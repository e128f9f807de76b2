"""What a sweep file says: an experiment, seeds, a grid → trials, each of them checked before the first one starts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from neural.blueprint import read
from neural.core import yaml_places
from neural.core.diagnostics import Diagnostic, Findings, Source, Where
from neural.core.fields import Says
from neural.core.mistakes import Contradiction
from neural.core.settings import Settings, SettingsError, read_settings
from neural.experiments import source_of, task_of
from neural.tasks import registry as tasks
from neural.tasks.experiment import Interval, Name, read_experiment
from neural.tasks.supervised import SupervisedSettings
from neural.tasks.task import TaskError

LONGEST = 80
"""Letters of a trial's name, as of any run's."""
MOST = 10_000
"""Trials."""
SEED = "training.seed"
Places = dict[str, tuple[Source, Where, Where]]
"""For a change (`training.steps=5`): the file that causes it, and where its key and its value stand there."""
Values = Annotated[tuple[Any, ...], Field(min_length=1), Says("a list of values, one or more")]


class SweepSettings(Settings):
    """The same experiment, many times: every combination of the grid's values with every seed."""

    experiment: str = Field(min_length=1, description="An experiment or a `.neural` program, seen from this file.")
    name: Name | None = Field(None, description="Goes into the folder's name; the file's name if not said.")
    seeds: Annotated[tuple[Interval, ...], Field(min_length=1), Says("a list of whole numbers, one or more")] = Field(
        (0,), description="Each combination is trained once with each."
    )
    grid: dict[str, Values] = Field({}, description="Keys of the experiment, each with the values to try.")
    set: tuple[str, ...] = Field((), description="Changes that are the same for all: `training.steps=200`.")
    retries: Interval = Field(2, description="Times that a failed trial is started again, from its checkpoint.")

    def verify(self) -> Iterator[Contradiction]:
        """No trial twice, and not too many."""
        yield from super().verify()
        if SEED in self.grid:
            yield Contradiction(f"the grid has `{SEED}`", "grid", help="write them as `seeds: [0, 1, 2]`")
        if len(set(self.seeds)) < len(self.seeds):
            yield Contradiction("a seed stands twice", "seeds")
        for key, values in self.grid.items():
            if len({change_to(key, one) for one in values}) < len(values):
                yield Contradiction(f"a value of `{key}` stands twice", "grid")
        count = len(self.seeds)
        for values in self.grid.values():
            count *= len(values)
        if count > MOST:
            yield Contradiction(f"these are {count:,} trials, more than {MOST:,}", "grid", "seeds")


@dataclass(frozen=True)
class Trial:
    """One training of a sweep."""

    name: str
    """The same whenever the file says the same."""
    seed: int
    point: dict[str, Any]
    """The values of the grid."""
    changes: tuple[str, ...]
    """What `--set` says to `neural train`."""


def trials_of(settings: SweepSettings) -> list[Trial]:
    """Every combination, seeds innermost: what is alike stands together."""
    found = []
    for values in product(*settings.grid.values()):
        point = dict(zip(settings.grid, values, strict=True))
        for seed in settings.seeds:
            own = [change_to(key, value) for key, value in point.items()]
            changes = (*settings.set, *own, f"{SEED}={seed}")
            found.append(Trial(_name(point, seed), seed, point, changes))
    return told_apart(found)


def fresh_trials(trials: Sequence[Trial], seeds: Sequence[int]) -> list[Trial]:
    """The same trials with other seeds, to confirm what was selected. Names begin with `confirm_`."""
    repeated = []
    for trial in trials:
        for seed in seeds:
            name = f"confirm_{trial.name.removesuffix(str(trial.seed))}{seed}"
            if len(name) > LONGEST:
                name = f"confirm-{len(repeated):04}_seed-{seed}"
            changes = (*(change for change in trial.changes if not change.startswith(f"{SEED}=")), f"{SEED}={seed}")
            repeated.append(Trial(name, seed, trial.point, changes))
    return repeated


def told_apart(trials: list[Trial]) -> list[Trial]:
    """The trials as they are, or with numbers for names where these would be too long or alike."""
    names = [one.name for one in trials]
    if len(set(names)) == len(names) and max(map(len, names)) <= LONGEST:
        return trials
    return [replace(one, name=f"trial-{number:04}_seed-{one.seed}") for number, one in enumerate(trials)]


def read_sweep(path: Path) -> tuple[SweepSettings, Path, list[Trial]]:
    """A sweep file with its experiment and its trials; SettingsError or TaskError says all that is wrong in any."""
    source = source_of(path)
    settings = read_settings(SweepSettings, source)
    experiment = experiment_of(path, settings.experiment)
    trials = trials_of(settings)
    check(experiment, trials, places_of(source))
    return settings, experiment, trials


def experiment_of(path: Path, said: str) -> Path:
    """The experiment that a file of trials names; TaskError where there is none."""
    experiment = path.parent / Path(said).expanduser()
    if not experiment.is_file():
        raise TaskError(f"{path}: there is no experiment {experiment}; `experiment` is seen from that file")
    return experiment.absolute()


def check(experiment: Path, trials: Sequence[Trial], places: Places) -> None:
    """The settings of every trial; the data and the network once for every value of the grid.

    SettingsError or TaskError; what is wrong in a change is shown at its place.
    """
    wrong: dict[tuple[Source, str, str, Where], tuple[Source, Diagnostic]] = {}
    for trial in trials:
        try:
            _settings(experiment, trial.changes)
        except SettingsError as error:
            for source, one in _placed(error, places):
                wrong.setdefault((source, one.code, one.message, one.where), (source, one))
    if wrong:
        found = sorted(wrong.values(), key=lambda pair: pair[1].where.start)
        sources = dict.fromkeys(source for source, _ in found)
        raise SettingsError(*((one, tuple(said for source, said in found if source == one)) for one in sources))
    tried: set[str] = {f"{SEED}={trial.seed}" for trial in trials}
    for number, trial in enumerate(trials):
        if number == 0 or not tried.issuperset(trial.changes):
            tried.update(trial.changes)
            try:
                task_of(experiment, trial.changes)
            except TaskError as error:
                raise TaskError(f"{error}\n(trial {trial.name})") from None


def _settings(experiment: Path, changes: Sequence[str]) -> None:
    if experiment.suffix.lower() in (".yaml", ".yml", ".json"):
        read_experiment(read(experiment), changes, choose=lambda name: tasks.get(name).Settings)
    else:
        read_settings(SupervisedSettings, None, [f"network={json.dumps(experiment.name)}", *changes])


def _placed(error: SettingsError, places: Places) -> Iterable[tuple[Source, Diagnostic]]:
    """The mistakes, those in a change shown where the sweep's file says it."""
    for source, said in error.parts:
        for one in said:
            if source.name != "--set" or source.text not in places:
                yield source, one
                continue
            file, key, value = places[source.text]
            in_key = one.where.start < source.text.find("=")
            yield file, replace(one, where=key if in_key else value, labels=())


def places_of(source: Source) -> Places:
    """Of every change that the file causes."""
    root = yaml_places.read(source, Findings())
    found: Places = {}
    if root is None or not isinstance(root.value, dict):
        return found
    entries = root.value
    for entry in entries["grid"].node.value.items() if "grid" in entries and entries["grid"].node.value else ():
        key, values = entry
        for value in values.node.value:
            place = values.key.where if value.block else value.where
            found[change_to(key, value.data)] = source, values.key.where, place
    for change in entries["set"].node.value or () if "set" in entries else ():
        found[change.data] = source, change.where, change.where
    for seed in entries["seeds"].node.value or () if "seeds" in entries else ():
        found[f"{SEED}={seed.data}"] = source, seed.where, seed.where
    return found


def change_to(key: str, value: Any) -> str:
    """What `--set` takes."""
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


def _name(point: dict[str, Any], seed: int) -> str:
    """`learning_rate-0.001_batch_size-16_seed-0`."""
    last = [key.rpartition(".")[2] for key in point]
    keys = last if len(set(last)) == len(last) else [*point]
    parts = [f"{key}-{_short(value)}" for key, value in zip(keys, point.values(), strict=True)]
    return re.sub(r"[^\w.-]+", "-", "_".join([*parts, f"seed-{seed}"]))


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
