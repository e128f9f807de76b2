"""A sweep: a folder of runs, one for each trial, and a table that says how each of them went.

    runs/2026-11-16_01-50-12_rates/
      trials.json                                             the table: written whole, after every change
      2026-11-16_01-50-15_learning_rate-0.001_seed-0/         a run like any other
      learning_rate-0.001_seed-0.log                          what its process said

The run folders are the truth and the table is what was last seen of them: a sweep that was killed goes on from what is
there.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.files import write_atomically
from neural.core.settings import Settings, resolved
from neural.digest import best, last_score
from neural.experiments import find_run
from neural.tracking.folder import json_of, put_in_place
from neural.tracking.run import Run
from neural.tracking.status import Status, status_from
from neural.tracking.trouble import RunError, in_words
from neural.training.runner import Job
from neural.trials import Trial, fresh_trials
from neural.views.watched import watched

if TYPE_CHECKING:
    from neural.views.paired import PairedComparison
    from neural.views.seeds import Estimate
    from neural.views.selection import Selection

TRIALS = "trials.json"
VERSION = 2
SPLIT_SEED = "split_seed"


@dataclass
class Row:
    """A trial and how it went."""

    trial: Trial
    state: str = "waiting"
    """waiting, running, finished, failed, or stopped."""
    reason: str = ""
    """Why it failed, in a line."""
    attempts: int = 0
    run: str | None = None
    """The folder's name."""
    step: int = 0
    steps: int | None = None
    score: float | None = None
    scores: dict[str, float | None] = field(default_factory=dict)
    """Of the best validation."""
    last: float | None = None
    """The same score at the last validation: nothing was selected by it."""
    confirms: bool = False
    """Whether it trains a selected setting again with a fresh seed."""

    @property
    def done(self) -> bool:
        """Whether there is nothing left to train."""
        return self.state == "finished"


@dataclass(frozen=True)
class Point:
    """A combination of the grid's values, over the seeds that finished."""

    values: dict[str, Any]
    scores: tuple[float, ...]
    seeds: tuple[Hashable, ...] = ()
    """Of each score: the training's seed, with that of the split where the grid has it."""
    last_scores: tuple[float, ...] = ()
    """At the last validation of each trial."""

    @property
    def by_seed(self) -> dict[Hashable, float]:
        """The scores, to be paired with those of another point."""
        return dict(zip(self.seeds, self.scores, strict=True))

    @property
    def mean(self) -> float:
        """Of the best scores."""
        return float(np.mean(self.scores)) if self.scores else math.nan

    @property
    def error(self) -> float:
        """Standard error of the mean; NaN for one seed."""
        return float(np.std(self.scores, ddof=1) / math.sqrt(len(self.scores))) if len(self.scores) > 1 else math.nan

    @property
    def last_mean(self) -> float:
        """Of the scores at the last validation."""
        return float(np.mean(self.last_scores)) if self.last_scores else math.nan


@dataclass(frozen=True)
class Confirmation:
    """The selected setting and the runner-up, trained again with fresh seeds.

    Scores are those of the last validation. Neither the choice among settings nor the choice of a
    step went into them, so their means are not optimistic.
    """

    points: tuple[Point, Point]
    """The selected one first, whichever is better now."""
    seeds: tuple[int, ...]
    estimates: tuple[Estimate, Estimate]
    comparison: PairedComparison
    """The runner-up against the selected one."""


class Sweep:
    """A sweep's folder; made by `created` or `opened`."""

    def __init__(self, path: Path, experiment: Path, settings: dict[str, Any], rows: list[Row]) -> None:
        self.path, self.experiment, self.settings, self.rows = path, experiment, settings, rows
        self.options: tuple[str, ...] = ()
        """What else `neural train` is told, in every trial."""
        self.about: dict[str, Any] = {}
        """What its maker wants to know again; plain data. `command`: what goes on with it."""
        self.writer: Status | None = None
        """The process that runs it, if one does."""
        self.time = time.time()
        """When the table was last written, in seconds since 1970."""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    def job(self, row: Row) -> Job:
        """What a runner needs to know."""
        changes = [word for change in row.trial.changes for word in ("--set", change)]
        return Job(row.trial.name, self.path, (str(self.experiment), *changes, *self.options, "--name", row.trial.name))

    def refresh(self) -> None:
        """See how far the runs are."""
        for row in self.rows:
            self.look(row)

    def look(self, row: Row) -> None:
        """See how far one is."""
        path = self.job(row).run()
        if path is None:
            return
        row.run = path.name
        try:
            with Run.open(path) as run:
                status, found = run.status, best(run)
                row.step, row.steps, row.last = status.step, run.described("steps"), last_score(run)
        except RunError as broken:
            row.reason = row.reason or str(broken)
            return
        if found is not None:
            row.score, row.scores = found.score, found.scores
        if status.state == "finished":
            row.state, row.reason = "finished", ""
        elif status.state == "running" and row.state == "waiting":
            row.state = "running"

    def write(self, *, durable: bool = True) -> None:
        """The table, in place of the last one."""
        self.time = time.time()
        data = {
            "version": VERSION, "experiment": str(self.experiment), "settings": self.settings, "time": self.time,
            "options": self.options, "about": self.about,
            "writer": asdict(replace(self.writer, time=self.time)) if self.writer else None,
            "trials": [asdict(row) for row in self.rows],
        }  # fmt: skip
        with in_words(f"{self.path} cannot be written"):
            write_atomically(self.path / TRIALS, json.dumps(data, indent=1, ensure_ascii=False) + "\n", durable=durable)

    def counts(self) -> dict[str, Any]:
        """The sweep in one line."""
        states = [row.state for row in self.rows]
        order = ("running", "failed", "stopped", "waiting")
        found = {name: states.count(name) for name in ("finished", *order)}
        state = next((one for one in order if found[one]), "finished")
        if self.writer is not None:
            state = "running"
        elif state == "waiting":
            state = "stopped"
        return {"state": state, "trials": len(states), **found, "time": self.time}

    @property
    def unfinished(self) -> list[Row]:
        """What a resumed sweep would run."""
        return [row for row in self.rows if not row.done]

    def judged_by(self) -> tuple[str, bool]:
        """The score that decides, and whether larger is better."""
        for row in self.rows:
            if row.run is not None:
                with Run.open(self.path / row.run) as run:
                    return watched(str(run.settings.get("task", "")))
        return watched("")

    def ranked(self) -> list[Row]:
        """The trials, best score first, those without one last."""
        _, larger = self.judged_by()
        return sorted(self.rows, key=lambda row: _rank(row.score if row.done else None, larger))

    def points(self) -> list[Point]:
        """The grid's combinations, best mean first; without the trials that confirm them."""
        _, larger = self.judged_by()
        points = _points([row for row in self.rows if not row.confirms])
        return sorted(points, key=lambda point: _rank(point.mean, larger))

    def against_best(self, points: Sequence[Point]) -> list[PairedComparison]:
        """Every point but the first against the first, the best on average: by pairs of seeds."""
        # scipy, which listing a sweep does not need
        from neural.views.paired import compare_pairs

        _, larger = self.judged_by()
        scores = [point.by_seed for point in points]
        return compare_pairs(scores[1:], scores[0], larger_is_better=larger, is_selected=True)

    def selection(self, points: Sequence[Point]) -> Selection | None:
        """How optimistic the first of the points is; None where nothing was selected."""
        from neural.views.selection import describe_selection

        scored = [point.by_seed for point in points if point.scores]
        return describe_selection(scored) if len(scored) > 1 else None

    def add_confirmation(self, count: int) -> list[Row]:
        """Trials of the selected setting and the runner-up with `count` fresh seeds; RunError where it cannot be.

        Asked again for as many, it adds nothing. More seeds are refused: whoever looks at a result
        and then adds seeds until it is decided gets intervals that are too narrow.
        """
        confirming = [row for row in self.rows if row.confirms]
        if confirming:
            earlier = len({row.trial.seed for row in confirming})
            if earlier != count:
                raise RunError(f"{self.path} is confirmed with {earlier} fresh seeds already: --confirm {earlier}")
            return []
        ranked = [point for point in self.points() if point.scores]
        if len(ranked) < 2:
            raise RunError(f"{self.path} has no two settings with scores: there is nothing to confirm")
        first_seed = 1 + max(row.trial.seed for row in self.rows)
        seeds = range(first_seed, first_seed + count)
        templates = []
        for point in ranked[:2]:
            alike = [row.trial for row in self.rows if _values(row) == point.values]
            templates += [trial for trial in alike if trial.seed == alike[0].seed]
        confirming = [Row(trial, confirms=True) for trial in fresh_trials(templates, seeds)]
        self.rows += confirming
        return confirming

    def confirmation(self) -> Confirmation | None:
        """What the fresh seeds say; None before both settings have finished one."""
        from neural.views.paired import compare_pairs
        from neural.views.seeds import over_seeds

        rows = [row for row in self.rows if row.confirms]
        points = _points(rows, last=True)
        if len(points) != 2 or not all(point.scores for point in points):
            return None
        _, larger = self.judged_by()
        selected, runner_up = points
        (comparison,) = compare_pairs([runner_up.by_seed], selected.by_seed, larger_is_better=larger)
        return Confirmation(
            points=(selected, runner_up),
            seeds=tuple(sorted({row.trial.seed for row in rows})),
            estimates=(over_seeds(selected.scores), over_seeds(runner_up.scores)),
            comparison=comparison,
        )


def created(
    root: Path, name: str, settings: Settings, experiment: Path, trials: list[Trial], *,
    options: Sequence[str] = (), about: dict[str, Any] | None = None,
) -> Sweep:  # fmt: skip
    """A new folder for a sweep; it appears with its table, or not at all. The settings have `retries`."""
    root, now = root.absolute(), time.time()
    aside = root / f".new-{os.getpid()}-{time.time_ns()}"
    sweep = Sweep(aside, experiment, resolved(settings), [Row(one) for one in trials])
    sweep.options, sweep.about = tuple(options), about or {}
    with in_words(f"no sweep can be created in {root}"):
        try:
            aside.mkdir(parents=True)
            sweep.write()
            sweep.path = put_in_place(aside, root, name, now)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    return sweep


def opened(path: Path) -> Sweep:
    """The sweep in a folder, as its table was last written; RunError where there is none."""
    path = path.absolute()
    if not (path / TRIALS).is_file():
        raise RunError(f"{path} is not the folder of a sweep: it has no {TRIALS}")
    data = json_of(path / TRIALS)
    if type(data.get("version")) is int and data["version"] > VERSION:
        raise RunError(f"{path} was written by a newer version of neural (its table has version {data['version']})")
    try:
        rows = [_row(one) for one in data["trials"]]
        sweep = Sweep(path, Path(data["experiment"]), data["settings"], rows)
        sweep.options, sweep.about = tuple(data.get("options", ())), data.get("about", {})
        sweep.time, writer = float(data["time"]), status_from(data["writer"]).as_seen_now() if data["writer"] else None
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as wrong:
        raise RunError(f"{path / TRIALS} is damaged: {wrong!r}") from wrong
    if writer is not None and writer.state == "running":
        sweep.writer = writer
        return sweep
    for row in rows:   # its process was killed and could not say how they were
        row.state = "stopped" if row.state == "running" else row.state
    return sweep


def find_sweep(name: str | None, root: Path) -> Path:
    """A sweep by its path, its folder's name or a part of it; the newest without a name."""
    if name is not None and Path(name).is_dir():
        return Path(name)
    found = sorted(one.parent for one in root.glob(f"[!.]*/{TRIALS}")) if root.is_dir() else []
    fitting = [one for one in found if name is None or name in one.name]
    if fitting and (name is None or len(fitting) == 1):
        return fitting[-1]
    if fitting:
        raise RunError(f"`{name}` fits several sweeps: {', '.join(one.name for one in fitting[-5:])}")
    raise RunError(f"there is no sweep{f' `{name}`' if name else ''} in {root}")


def find_either(name: str | None, root: Path) -> Path:
    """A run, or a sweep where no run is called so; without a name the newest of both."""
    try:
        run = find_run(name, root)
    except RunError:
        with suppress(RunError):
            return find_sweep(name, root)
        raise
    if name is None:
        with suppress(RunError):
            return max(run, find_sweep(None, root))   # a folder's name begins with the time
    return run


def _row(data: dict[str, Any]) -> Row:
    said = data["trial"]
    trial = Trial(said["name"], said["seed"], said["point"], tuple(said["changes"]))
    row = Row(trial, **{name: value for name, value in data.items() if name != "trial"})
    kinds = {"state": str, "reason": str, "attempts": int, "run": str | None, "step": int, "steps": int | None,
             "score": int | float | None, "scores": dict, "last": int | float | None, "confirms": bool}  # fmt: skip
    wrong = [name for name, kind in kinds.items() if not isinstance(getattr(row, name), kind)]
    texts = all(isinstance(one, str) for one in (trial.name, *trial.changes))
    if wrong or not texts or not isinstance(trial.point, dict):
        raise TypeError(", ".join(wrong) or "a trial")
    if {trial.name, row.run or "run"} & {"", ".", ".."} or "/" in trial.name + (row.run or ""):
        raise ValueError("a trial lies outside of the folder")
    return row


def _points(rows: Sequence[Row], *, last: bool = False) -> list[Point]:
    """The rows by the grid's values, in their order; scores of the best validations, or of the last ones."""
    together: dict[str, list[Row]] = {}
    for row in rows:
        together.setdefault(json.dumps(_values(row)), []).append(row)
    points = []
    for alike in together.values():
        done = [row for row in alike if row.done]
        score = {_seed(row): row.last if last else row.score for row in done}
        scored = {seed: value for seed, value in score.items() if value is not None}
        at_the_end = tuple(row.last for row in done if row.last is not None)
        points.append(Point(_values(alike[0]), tuple(scored.values()), tuple(scored), at_the_end))
    return points


def _values(row: Row) -> dict[str, Any]:
    """The grid's values of a trial, without what only repeats it."""
    return {key: value for key, value in row.trial.point.items() if key != SPLIT_SEED}


def _seed(row: Row) -> Hashable:
    """What two trials must share to be a pair: weights to start from, batches, held-out data."""
    return (row.trial.seed, row.trial.point.get(SPLIT_SEED))


def _rank(score: float | None, larger: bool) -> tuple[bool, float]:
    none = score is None or math.isnan(score)
    return none, 0.0 if score is None or none else -score if larger else score
