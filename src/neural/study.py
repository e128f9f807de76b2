"""How attention evolves while character-level models learn: texts × seeds, looked at, validated and sampled alike.

    study = read_study(Path("evolution.yaml"))
    sweep = begun(study, Path("runs"), "neural study evolution.yaml")
    go(sweep, runner)                           as any sweep (sweeping.py); what is finished is not trained again
    report(sweep)                               findings, plots and one page (study_report.py)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from neural.core import yaml_places
from neural.core.diagnostics import Findings, Source
from neural.core.fields import Says
from neural.core.mistakes import Contradiction
from neural.core.names import did_you_mean
from neural.core.settings import Settings, read_settings, resolved
from neural.experiments import source_of, task_of
from neural.samples import Judged, Samples
from neural.sweep import TRIALS, Sweep, created, opened
from neural.tasks.experiment import Count, Interval, Name
from neural.tasks.task import Task, TaskError
from neural.tracking.trouble import RunError
from neural.training.engine import steps_of
from neural.trials import SEED, Places, Trial, change_to, check, experiment_of, places_of, told_apart
from neural.views.correlation import FEWEST_STEPS
from neural.views.seeds import FEWEST

OURS = {"data": "data", SEED: "seeds", "training.validate_every": "every", "tracking.track_every": "every"}
"""Keys of the experiment that the study sets itself, and where its file says them."""


class StudySettings(Settings):
    """The same experiment on every text with every seed, and what is watched meanwhile."""

    experiment: str = Field(min_length=1, description="An experiment with the task `language_model`, seen from here.")
    name: Name | None = Field(None, description="Goes into the folder's name; the file's name if not said.")
    data: Annotated[tuple[str, ...], Field(min_length=1), Says("a list of texts, one or more")] = Field(
        ("handbook",), description="What is learned: names, files or folders, seen from the experiment."
    )
    seeds: Annotated[tuple[Interval, ...], Field(min_length=1), Says("a list of whole numbers, one or more")] = Field(
        (0, 1, 2, 3, 4), description="Every text is learned once with each; fewer than five decide nothing."
    )
    every: Count = Field(100, description="Steps between looks at the attention, each with a validation and samples.")
    generation: Samples = Field(default_factory=Samples, description="What is written at every validation, and judged.")
    set: tuple[str, ...] = Field((), description="Changes that are the same for all: `training.steps=200`.")
    own: dict[str, tuple[str, ...]] = Field({}, description="Changes for one text: `enwik8: [training.steps=100]`.")
    retries: Interval = Field(2, description="Times that a failed trial is started again, from its checkpoint.")

    def verify(self) -> Iterator[Contradiction]:
        """No trial twice, and nothing said in two places."""
        yield from super().verify()
        for key in ("data", "seeds"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                yield Contradiction(f"{'a text' if key == 'data' else 'a seed'} stands twice", key)
        for name in self.own:
            if name not in self.data:
                guess = did_you_mean(name, self.data)
                yield Contradiction(f"`{name}` is not among the texts of `data`", "own", "data", help=guess or None)
        for where, changes in [("set", self.set), *(("own", changes) for changes in self.own.values())]:
            for key in (change.partition("=")[0].strip() for change in changes):
                if key in OURS:
                    yield Contradiction(f"`{key}` is set by the study", where, help=f"say it as `{OURS[key]}: …`")


@dataclass(frozen=True)
class Study:
    """A study's file, read and checked."""

    name: str
    settings: StudySettings
    experiment: Path
    trials: list[Trial]
    tasks: dict[str, Task]
    """Of each text, with the first seed."""
    texts: dict[str, str]
    """What the files say, by their names."""

    @property
    def notes(self) -> list[str]:
        """What would make its findings worth less, a sentence each."""
        few = f"fewer than {FEWEST} seeds decide nothing: every finding will be undecided"
        found = [few] if len(self.settings.seeds) < FEWEST else []
        for data, task in self.tasks.items():
            if (looks := self.looks(task)) < FEWEST_STEPS:
                found.append(f"{data}: {looks} validations are too few for a correlation (at least {FEWEST_STEPS}); "
                             "lower `every`")  # fmt: skip
            found += task.remarks
        return found

    def looks(self, task: Task) -> int:
        """Validations, each with a look and samples."""
        return -(-steps_of(task) // self.settings.every)

    def about(self, command: str) -> dict[str, Any]:
        """What is kept beside the table of trials."""
        return {"study": self.name, "command": command, "texts": self.texts}


def read_study(path: Path, changes: Sequence[str] = ()) -> Study:
    """A study's file with changes made to it (`seeds=[0, 1]`); SettingsError or TaskError says what is wrong."""
    source = source_of(path)
    settings = read_settings(StudySettings, source, changes)
    experiment = experiment_of(path, settings.experiment)
    if experiment.suffix.lower() == ".neural":
        said = f"`task: language_model` and `network: {experiment.name}`"
        raise TaskError(f"{path}: a study takes an experiment in YAML, with {said}")
    trials = trials_of(settings)
    check(experiment, trials, _places(source))
    first = {str(one.point["data"]): one for one in reversed(trials)}
    tasks = {data: task_of(experiment, first[data].changes) for data in settings.data}
    for data, task in tasks.items():
        try:
            Judged(task, settings.generation)
        except TaskError as error:
            raise TaskError(f"{data}: {error}") from None
    texts = {path.name: source.text, experiment.name: source_of(experiment).text}
    return Study(settings.name or path.stem, settings, experiment, trials, tasks, texts)


def trials_of(settings: StudySettings) -> list[Trial]:
    """Every text with every seed."""
    found = []
    for data in settings.data:
        name = re.sub(r"[^\w.-]+", "-", Path(data).stem or data)
        watching = [f"{key}={settings.every}" for key, said in OURS.items() if said == "every"]
        for seed in settings.seeds:
            changes = (*settings.set, *settings.own.get(data, ()), change_to("data", data), *watching, f"{SEED}={seed}")
            found.append(Trial(f"{name}_seed-{seed}", seed, {"data": data}, changes))
    return told_apart(found)


def begun(study: Study, root: Path, command: str, *, new: bool = False) -> tuple[Sweep, bool]:
    """The folder of a study, and whether it was there: the newest whose files say the same, unless a `new` is asked."""
    old = None if new else _earlier(study, root)
    if old is not None:
        return old, True
    options = ("--samples", json.dumps(resolved(study.settings.generation), ensure_ascii=False))
    files = (study.settings, study.experiment, study.trials)
    return created(root, study.name, *files, options=options, about=study.about(command)), False


def _earlier(study: Study, root: Path) -> Sweep | None:
    for table in sorted(root.glob(f"[!.]*/{TRIALS}"), reverse=True):
        try:
            sweep = opened(table.parent)
        except RunError:   # not ours to complain about
            continue
        same = sweep.settings == resolved(study.settings) and sweep.experiment == study.experiment
        if same and sweep.about.get("texts", {}).get(study.experiment.name) == study.texts[study.experiment.name]:
            return sweep
    return None


def _places(source: Source) -> Places:
    found = places_of(source)
    root = yaml_places.read(source, Findings())
    entries = root.value if root is not None and isinstance(root.value, dict) else {}
    for text in entries["data"].node.value or () if "data" in entries else ():
        found[change_to("data", text.data)] = source, entries["data"].key.where, text.where
    for changes in (entries["own"].node.value or {}).values() if "own" in entries else ():
        for change in changes.node.value or ():
            found[change.data] = source, change.where, change.where
    return found
