"""Read a sweep file: experiment, seeds and grid → trials, all checked before the first one starts.

An experiment is a file of settings for one training. The grid lists values for some of them, as of
scikit-learn's GridSearchCV; a point is one combination of values.
A trial is one training: the experiment with overrides, texts such as `training.steps=5` that
replace a setting. A study (study.py) is another kind of file that is expanded to trials.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from neural.core import yaml_positions
from neural.core.diagnostics import Diagnostic, DiagnosticCollector, SourceSpan, SourceText
from neural.core.errors import TaskError
from neural.core.experiment import NonNegativeInt, RunName
from neural.core.files import expand_home, read_source_text
from neural.core.settings import Settings, SettingsError, read_settings
from neural.core.settings_errors import SettingsConflictError
from neural.core.settings_fields import ValueDescription
from neural.tasks.supervised.task import SupervisedSettings
from neural.training.load_task import load_task, read_experiment, read_source
from neural.workflows.train import resolve_override

MAX_NAME_LENGTH = 80
"""Characters of a trial's name; the limit of all run names."""
MAX_TRIALS = 10_000
"""A sweep file with more trials is refused."""
MAX_FOLDS = 1000
"""A cross-validation with more folds is refused."""
FOLD_KEY = "fold"
"""Setting of an experiment that `folds` of a sweep replaces."""
SEED_KEY = "training.seed"
"""Setting of an experiment that `seeds` of a sweep or study replaces."""
OverridePositions = dict[str, tuple[SourceText, SourceSpan, SourceSpan]]
"""For an override (`training.steps=5`): its file, and the spans of its key and its value."""
GridValues = Annotated[
    tuple[Any, ...], Field(min_length=1), ValueDescription("a list of values, one or more")
]


class SweepSettings(Settings):
    """One experiment with every combination of the grid's values and every seed."""

    experiment: str = Field(
        min_length=1, description="An experiment or a `.neural` program, relative to this file."
    )
    name: RunName | None = Field(
        None, description="Part of the folder's name; by default the file's name."
    )
    seeds: Annotated[
        tuple[NonNegativeInt, ...],
        Field(min_length=1),
        ValueDescription("a list of whole numbers, one or more"),
    ] = Field((0,), description="Each combination is trained once with each seed.")
    grid: dict[str, GridValues] = Field(
        {}, description="Keys of the experiment, each with its values."
    )
    set: tuple[str, ...] = Field((), description="Overrides for all trials: `training.steps=200`.")
    folds: Annotated[int, Field(ge=2, le=MAX_FOLDS)] | None = Field(
        None, description="Cross-validation: each combination is trained once with each fold."
    )
    retries: NonNegativeInt = Field(
        2, description="Restarts of a failed trial, from its checkpoint."
    )

    def verify(self) -> Iterator[SettingsConflictError]:
        """Yield an error for duplicate trials, and for too many."""
        if FOLD_KEY in self.grid and self.folds is not None:
            yield SettingsConflictError(f"the grid has `{FOLD_KEY}` too", "folds", "grid")
        if SEED_KEY in self.grid:
            yield SettingsConflictError(
                f"the grid has `{SEED_KEY}`", "grid", help="write them as `seeds: [0, 1, 2]`"
            )
        if len(set(self.seeds)) < len(self.seeds):
            yield SettingsConflictError("a seed is listed twice", "seeds")
        for key, values in self.grid.items():
            if len({format_override(key, value) for value in values}) < len(values):
                yield SettingsConflictError(f"a value of `{key}` is listed twice", "grid")
        count = len(self.seeds) * (self.folds or 1)
        for values in self.grid.values():
            count *= len(values)
        if count > MAX_TRIALS:
            yield SettingsConflictError(
                f"these are {count:,} trials, more than {MAX_TRIALS:,}", "grid", "seeds"
            )


@dataclass(frozen=True)
class Trial:
    """One training of a sweep."""

    name: str
    """Depends on the grid's values and the seed only."""
    seed: int
    point: dict[str, Any]
    """One value for each key of the grid."""
    overrides: tuple[str, ...]
    """Overrides for `neural train --set`."""


def expand_grid(settings: SweepSettings) -> list[Trial]:
    """A trial for every combination of grid values, folds and seeds; seeds vary fastest."""
    trials = []
    grid, shared_overrides = dict(settings.grid), settings.set
    if settings.folds is not None:
        shared_overrides += ("validation_split=null",)  # the fold is held out instead
        grid[FOLD_KEY] = tuple(f"{fold + 1}/{settings.folds}" for fold in range(settings.folds))
    for values in product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        for seed in settings.seeds:
            grid_overrides = [format_override(key, value) for key, value in point.items()]
            overrides = (*shared_overrides, *grid_overrides, f"{SEED_KEY}={seed}")
            trials.append(Trial(_format_trial_name(point, seed), seed, point, overrides))
    return ensure_unique_names(trials)


def reseed_trials(trials: Sequence[Trial], seeds: Sequence[int]) -> list[Trial]:
    """The same trials with other seeds, to confirm a selection. Names start with `confirm_`."""
    repeated = []
    for trial in trials:
        for seed in seeds:
            name = f"confirm_{trial.name.removesuffix(str(trial.seed))}{seed}"
            if len(name) > MAX_NAME_LENGTH:
                name = f"confirm-{len(repeated):04}_seed-{seed}"
            overrides = (
                *(text for text in trial.overrides if not text.startswith(f"{SEED_KEY}=")),
                f"{SEED_KEY}={seed}",
            )
            repeated.append(Trial(name, seed, trial.point, overrides))
    return repeated


def ensure_unique_names(trials: list[Trial]) -> list[Trial]:
    """The trials; named by number if their names are too long, or equal but for their case."""
    names = [trial.name.casefold() for trial in trials]
    if len(set(names)) == len(names) and max(map(len, names)) <= MAX_NAME_LENGTH:
        return trials
    return [
        replace(trial, name=f"trial-{index:04}_seed-{trial.seed}")
        for index, trial in enumerate(trials)
    ]


def read_sweep(
    path: Path, *, folds: int | None = None, overrides: Sequence[str] = ()
) -> tuple[SweepSettings, Path, list[Trial]]:
    """A sweep file with its experiment and trials. SettingsError or TaskError lists all errors.

    `overrides` change the experiment of all trials, after those of the file (`set`). `folds` is the
    number of folds of a cross-validation, in place of the file's own. With it, `path` may
    also be an experiment or a program: then there are no other settings to vary.
    """
    source = read_source(path)
    if folds is not None and not _is_sweep(source, path):
        settings = SweepSettings(experiment=path.name, folds=folds)
    else:
        sweep_overrides = [] if folds is None else [f"folds={folds}"]
        settings = read_settings(SweepSettings, source, sweep_overrides)
    experiment = resolve_experiment(path, settings.experiment)
    for override in overrides:
        key = override.partition("=")[0].strip()
        if key in (*settings.grid, SEED_KEY):
            place = "`seeds`" if key == SEED_KEY else "`grid`"
            raise TaskError(
                f"--set {override}: the values of `{key}` are in {place} of {path.name}"
            )
    typed_overrides = [resolve_override(override, experiment.parent) for override in overrides]
    settings = settings.model_copy(update={"set": (*settings.set, *typed_overrides)})
    trials = expand_grid(settings)
    positions = locate_overrides(source) if _is_sweep(source, path) else {}
    check_trials(experiment, trials, positions)
    return settings, experiment, trials


def _is_sweep(source: SourceText, path: Path) -> bool:
    """Whether a file is a sweep, not an experiment (which has a `task`) or a program."""
    keys = set(yaml_positions.iter_top_level_keys(source.text))
    return path.suffix.lower() in (".yaml", ".yml", ".json") and "task" not in keys


def resolve_experiment(path: Path, name: str) -> Path:
    """The experiment that a sweep or study file names. TaskError if it does not exist."""
    experiment = path.parent / expand_home(name)
    if not experiment.is_file():
        raise TaskError(
            f"{path}: there is no experiment {experiment}; `experiment` is relative to that file"
        )
    return experiment.absolute()


def check_trials(experiment: Path, trials: Sequence[Trial], positions: OverridePositions) -> None:
    """Check the settings of every trial, and data and network once per value of the grid.

    Raises SettingsError or TaskError. An error in an override is shown at its position in the sweep
    file, from `positions`.
    """
    errors: dict[tuple[SourceText, str, str, SourceSpan], tuple[SourceText, Diagnostic]] = {}
    for trial in trials:
        try:
            _check_settings(experiment, trial.overrides)
        except SettingsError as error:
            for source, diagnostic in _relocate_diagnostics(error, positions):
                key = (source, diagnostic.code, diagnostic.message, diagnostic.span)
                errors.setdefault(key, (source, diagnostic))
    if errors:
        ordered = sorted(errors.values(), key=lambda pair: pair[1].span.start)
        by_source: dict[SourceText, list[Diagnostic]] = {}
        for source, diagnostic in ordered:
            by_source.setdefault(source, []).append(diagnostic)
        raise SettingsError(
            *((source, tuple(diagnostics)) for source, diagnostics in by_source.items())
        )
    # loading data takes time: only trials with an override that no earlier trial had; a seed needs
    # no check of its own, nor do the folds after the first
    checked_overrides = {f"{SEED_KEY}={trial.seed}" for trial in trials}
    checked_overrides |= {
        format_override(FOLD_KEY, trial.point[FOLD_KEY])
        for trial in trials
        if FOLD_KEY in trial.point
    }
    for index, trial in enumerate(trials):
        if index == 0 or not checked_overrides.issuperset(trial.overrides):
            checked_overrides.update(trial.overrides)
            try:
                load_task(experiment, trial.overrides)
            except TaskError as error:
                raise TaskError(f"{error}\n(trial {trial.name})") from None


def _check_settings(experiment: Path, overrides: Sequence[str]) -> None:
    """Raise SettingsError for wrong settings, without reading data or network.

    A `.neural` program alone is a supervised experiment with default settings.
    """
    if experiment.suffix.lower() in (".yaml", ".yml", ".json"):
        read_experiment(read_source_text(experiment), overrides)
    else:
        read_settings(
            SupervisedSettings, None, [f"network={json.dumps(experiment.name)}", *overrides]
        )


def _relocate_diagnostics(
    error: SettingsError, positions: OverridePositions
) -> Iterable[tuple[SourceText, Diagnostic]]:
    """The diagnostics; those in an override point to the sweep file."""
    for source, diagnostics in error.diagnostics_by_source:
        for diagnostic in diagnostics:
            # diagnostics in overrides have the override itself as their source, named "--set"
            if source.name != "--set" or source.text not in positions:
                yield source, diagnostic
                continue
            file, key, value = positions[source.text]
            is_in_key = diagnostic.span.start < source.text.find("=")
            yield file, replace(diagnostic, span=key if is_in_key else value, labels=())


def locate_overrides(source: SourceText) -> OverridePositions:
    """Positions in a sweep file of all overrides that its `grid`, `set` and `seeds` cause."""
    root = yaml_positions.parse_yaml(source, DiagnosticCollector())
    positions: OverridePositions = {}
    if root is None or not isinstance(root.value, dict):
        return positions
    entries = root.value
    for entry in (
        entries["grid"].node.value.items()
        if "grid" in entries and entries["grid"].node.value
        else ()
    ):
        key, values = entry
        for value in values.node.value:
            # a value of several lines is shown at its key
            span = values.key.span if value.is_block else value.span
            positions[format_override(key, value.data)] = source, values.key.span, span
    for override in entries["set"].node.value or () if "set" in entries else ():
        positions[override.data] = source, override.span, override.span
    for seed in entries["seeds"].node.value or () if "seeds" in entries else ():
        positions[f"{SEED_KEY}={seed.data}"] = source, seed.span, seed.span
    return positions


def format_override(key: str, value: Any) -> str:
    """An override as `--set` takes it."""
    return f"{key}={json.dumps(value, ensure_ascii=False)}"


def _format_trial_name(point: dict[str, Any], seed: int) -> str:
    """`learning_rate-0.001_batch_size-16_seed-0`."""
    # `learning_rate` for `training.learning_rate`, unless two keys would get the same name
    short_keys = [key.rpartition(".")[2] for key in point]
    keys = short_keys if len(set(short_keys)) == len(short_keys) else [*point]
    parts = [
        f"{key}-{_format_value(value)}" for key, value in zip(keys, point.values(), strict=True)
    ]
    return re.sub(r"[^\w.-]+", "-", "_".join([*parts, f"seed-{seed}"]))


def _format_value(value: Any) -> str:
    return (
        f"{value:g}"
        if isinstance(value, float)
        else value
        if isinstance(value, str)
        else json.dumps(value)
    )
