"""A study of how attention evolves while language models learn: training texts × seeds.

It is a sweep (sweep.py), that is, a folder of trainings called trials. They differ in text and
seed and are evaluated at the same steps; the report tests claims about attention. A snapshot is
the attention on a few fixed examples at a step.

study = read_study(Path("evolution.yaml"))
sweep, _ = open_or_create_study(study, Path("runs"), "neural study evolution.yaml")
run_sweep(sweep, runner)                    # as any sweep; finished trials are not repeated
write_study_report(sweep)                   # findings, plots and one page (study_report.py)
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from neural.core import yaml_positions
from neural.core.diagnostics import DiagnosticCollector, SourceText
from neural.core.errors import TaskError
from neural.core.experiment import NonNegativeInt, PositiveInt, RunName
from neural.core.names import suggest_name
from neural.core.settings import Settings, dump_settings, read_settings
from neural.core.settings_errors import SettingsConflictError
from neural.core.settings_fields import ValueDescription
from neural.runs.errors import RunError
from neural.stats.correlation import MIN_SHARED_STEPS
from neural.stats.means import MIN_SEEDS
from neural.tasks.task import Task
from neural.training.engine import count_steps
from neural.training.load_task import load_task, read_source
from neural.workflows.samples import SampleEvaluator, SampleSettings
from neural.workflows.sweep import TRIALS_FILE, Sweep, create_sweep, open_sweep
from neural.workflows.sweep_trials import (
    SEED_KEY,
    OverridePositions,
    Trial,
    check_trials,
    ensure_unique_names,
    format_override,
    locate_overrides,
    resolve_experiment,
)

STUDY_KEYS = {
    "data": "data",
    SEED_KEY: "seeds",
    "training.validate_every": "every",
    "tracking.track_every": "every",
}
"""Keys of the experiment that the study sets, each with the key of the study file for it."""


class StudySettings(Settings):
    """One experiment on every text with every seed, and how it is evaluated."""

    experiment: str = Field(
        min_length=1,
        description="An experiment with the task `language_model`, relative to this file.",
    )
    name: RunName | None = Field(
        None, description="Part of the folder's name; by default the file's name."
    )
    data: Annotated[
        tuple[str, ...], Field(min_length=1), ValueDescription("a list of texts, one or more")
    ] = Field(
        ("handbook",),
        description="Training texts: names, files or folders, relative to the experiment.",
    )
    seeds: Annotated[
        tuple[NonNegativeInt, ...],
        Field(min_length=1),
        ValueDescription("a list of whole numbers, one or more"),
    ] = Field(
        (0, 1, 2, 3, 4),
        description="Each text is trained once with each seed; fewer than five decide nothing.",
    )
    every: PositiveInt = Field(
        100, description="Steps between attention snapshots, each with a validation and samples."
    )
    generation: SampleSettings = Field(
        default_factory=SampleSettings,
        description="Texts generated and evaluated at every validation.",
    )
    set: tuple[str, ...] = Field((), description="Overrides for all trials: `training.steps=200`.")
    own: dict[str, tuple[str, ...]] = Field(
        {}, description="Overrides for one text: `enwik8: [training.steps=100]`."
    )
    retries: NonNegativeInt = Field(
        2, description="Restarts of a failed trial, from its checkpoint."
    )

    def verify(self) -> Iterator[SettingsConflictError]:
        """Yield an error for duplicate trials, and for overrides of STUDY_KEYS."""
        yield from super().verify()
        for key in ("data", "seeds"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                yield SettingsConflictError(
                    f"{'a text' if key == 'data' else 'a seed'} is listed twice", key
                )
        for name in self.own:
            if name not in self.data:
                guess = suggest_name(name, self.data)
                yield SettingsConflictError(
                    f"`{name}` is not among the texts of `data`", "own", "data", help=guess or None
                )
        for setting, overrides in [
            ("set", self.set),
            *(("own", overrides) for overrides in self.own.values()),
        ]:
            for key in (override.partition("=")[0].strip() for override in overrides):
                if key in STUDY_KEYS:
                    yield SettingsConflictError(
                        f"`{key}` is set by the study",
                        setting,
                        help=f"write `{STUDY_KEYS[key]}: …`",
                    )


@dataclass(frozen=True)
class Study:
    """A study file, read and checked."""

    name: str
    settings: StudySettings
    experiment: Path
    trials: list[Trial]
    tasks: dict[str, Task]
    """The task of each training text, with the first seed, by the name of the text."""
    texts: dict[str, str]
    """Contents of the study file and the experiment file, by file name."""

    @property
    def notes(self) -> list[str]:
        """Limits of the study's findings, one sentence each."""
        few_seeds = f"fewer than {MIN_SEEDS} seeds decide nothing: every finding will be undecided"
        notes = [few_seeds] if len(self.settings.seeds) < MIN_SEEDS else []
        for data, task in self.tasks.items():
            if (validations := self.count_validations(task)) < MIN_SHARED_STEPS:
                notes.append(
                    f"{data}: {validations} validations are too few for a correlation "
                    f"(at least {MIN_SHARED_STEPS}); lower `every`"
                )
            notes += task.notes
        return notes

    def count_validations(self, task: Task) -> int:
        """Number of validations, each with a snapshot and samples."""
        return math.ceil(count_steps(task) / self.settings.every)

    def metadata(self, command: str) -> dict[str, Any]:
        """Metadata of the study's sweep; `command` is the command that resumes it."""
        return {"study": self.name, "command": command, "texts": self.texts}


def read_study(path: Path, overrides: Sequence[str] = ()) -> Study:
    """Read a study file with overrides (`seeds=[0, 1]`). Raises SettingsError or TaskError."""
    source = read_source(path)
    settings = read_settings(StudySettings, source, overrides)
    experiment = resolve_experiment(path, settings.experiment)
    if experiment.suffix.lower() == ".neural":
        raise TaskError(
            f"{path}: a study takes an experiment in YAML, with `task: language_model` "
            f"and `network: {experiment.name}`"
        )
    trials = expand_study(settings)
    check_trials(experiment, trials, _locate_overrides(source))
    # reversed, so that the first trial of each text is the one that remains
    first_trials = {str(trial.point["data"]): trial for trial in reversed(trials)}
    tasks = {data: load_task(experiment, first_trials[data].overrides) for data in settings.data}
    for data, task in tasks.items():
        try:
            SampleEvaluator(task, settings.generation)  # created only for its errors
        except TaskError as error:
            raise TaskError(f"{data}: {error}") from None
    texts = {path.name: source.text, experiment.name: read_source(experiment).text}
    return Study(settings.name or path.stem, settings, experiment, trials, tasks, texts)


def expand_study(settings: StudySettings) -> list[Trial]:
    """Every text with every seed."""
    trials = []
    for data in settings.data:
        name = re.sub(r"[^\w.-]+", "-", Path(data).stem or data)
        intervals = [
            f"{key}={settings.every}"
            for key, study_key in STUDY_KEYS.items()
            if study_key == "every"
        ]
        for seed in settings.seeds:
            overrides = (
                *settings.set,
                *settings.own.get(data, ()),
                format_override("data", data),
                *intervals,
                f"{SEED_KEY}={seed}",
            )
            trials.append(Trial(f"{name}_seed-{seed}", seed, {"data": data}, overrides))
    return ensure_unique_names(trials)


def open_or_create_study(
    study: Study, root: Path, command: str, *, force_new: bool = False
) -> tuple[Sweep, bool]:
    """The sweep of a study, and whether it existed: the newest with equal files, or a new one.

    `root` is the folder of all runs and sweeps; `command` is saved as the command that resumes it.
    """
    existing = None if force_new else _find_existing(study, root)
    if existing is not None:
        return existing, True
    samples = json.dumps(dump_settings(study.settings.generation), ensure_ascii=False)
    files = (study.settings, study.experiment, study.trials)
    return create_sweep(
        root, study.name, *files, samples=samples, metadata=study.metadata(command)
    ), False


def _find_existing(study: Study, root: Path) -> Sweep | None:
    """The newest sweep in `root` with the settings and the experiment text of the study."""
    for table in sorted(root.glob(f"[!.]*/{TRIALS_FILE}"), reverse=True):
        try:
            sweep = open_sweep(table.parent)
        except RunError:  # a broken folder is reported where it is opened by name
            continue
        has_equal_settings = (
            sweep.settings == dump_settings(study.settings) and sweep.experiment == study.experiment
        )
        if (
            has_equal_settings
            and sweep.metadata.get("texts", {}).get(study.experiment.name)
            == study.texts[study.experiment.name]
        ):
            return sweep
    return None


def _locate_overrides(source: SourceText) -> OverridePositions:
    """Like `locate_overrides` of sweep files, with the study's own keys `data` and `own`."""
    positions = locate_overrides(source)
    root = yaml_positions.parse_yaml(source, DiagnosticCollector())
    entries = root.value if root is not None and isinstance(root.value, dict) else {}
    for text in entries["data"].node.value or () if "data" in entries else ():
        positions[format_override("data", text.data)] = source, entries["data"].key.span, text.span
    for overrides in (entries["own"].node.value or {}).values() if "own" in entries else ():
        for override in overrides.node.value or ():
            positions[override.data] = source, override.span, override.span
    return positions
