"""A sweep: a folder with one run per trial, and a table of their states and scores.

A trial is one training: one combination of the grid's values, called a point or setting, with one
seed (sweep_trials.py). An attempt is one start of its process. A runner (training/runner.py) starts
the processes, on this machine or elsewhere.

    runs/2026-11-16_01-50-12_rates/
      trials.json                                         the table, rewritten after every change
      2026-11-16_01-50-15_learning_rate-0.001_seed-0/     a run like any other
      learning_rate-0.001_seed-0.log                      output of its process

The run folders are authoritative; the table is a summary of them. A killed sweep resumes from the
run folders. A sweep can be confirmed: its best two settings are trained again with fresh seeds,
because the best score of many is too optimistic.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.files import write_atomically
from neural.core.redaction import has_secrets
from neural.core.settings import Settings, dump_settings
from neural.data.splits import Fold
from neural.findings.run_loading import get_monitored_metric
from neural.findings.run_summary import find_best_validation, load_last_score
from neural.runs.errors import RunError, translate_errors
from neural.runs.find import RUN_MARKER, SWEEP_MARKER, Choose, find_folder
from neural.runs.folder import PRIVATE_FOLDER_MODE, publish_folder, read_json_file
from neural.runs.lock import RunLock
from neural.runs.run import Run
from neural.runs.status import RunStatus, current_status, status_from_dict
from neural.training.runner import Runner, TrialJob, TrialResult
from neural.workflows import train_worker
from neural.workflows.sweep_trials import FOLD_KEY, Trial, reseed_trials
from neural.workflows.train import TrainRequest

if TYPE_CHECKING:
    from neural.stats.comparisons import PairedComparison
    from neural.stats.estimate import Estimate
    from neural.stats.power import SelectionBias

TRIALS_FILE = SWEEP_MARKER
TABLE_VERSION = 3
"""Format version of `trials.json`."""
SPLIT_SEED_KEY = "split_seed"
"""Setting that seeds the split into training and validation data."""
REPETITION_KEYS = (SPLIT_SEED_KEY, FOLD_KEY)
"""Settings that choose the held-out data: trials that differ in them repeat one point."""


@dataclass
class TrialRecord:
    """A trial with its state and scores: one row of the table."""

    trial: Trial
    state: str = "waiting"
    """waiting, running, finished, failed, or stopped."""
    reason: str = ""
    """Why the trial failed, in one line."""
    attempts: int = 0
    """Number of times the trial was started; a failed trial is retried."""
    run: str | None = None
    """Name of the run folder."""
    step: int = 0
    """Optimizer steps done."""
    steps: int | None = None
    """Optimizer steps of the complete training; None before it starts."""
    score: float | None = None
    """The metric that ranks trials, at the best validation."""
    scores: dict[str, float | None] = field(default_factory=dict)
    """All metrics of the best validation, by name."""
    last_score: float | None = None
    """The ranking metric at the last validation; unlike `score`, not a best of many."""
    is_confirmation: bool = False
    """Whether the trial repeats a selected setting with a fresh seed."""

    @property
    def is_finished(self) -> bool:
        """Whether the training is complete."""
        return self.state == "finished"


@dataclass(frozen=True)
class GridPoint:
    """A combination of the grid's values, over its seeds."""

    values: dict[str, Any]
    """The grid's values by settings key, without split seed and fold."""
    scores: tuple[float, ...]
    """One per finished trial, normally that of its best validation."""
    seeds: tuple[Hashable, ...] = ()
    """The (training seed, split seed or None, fold or None) of each score."""
    last_scores: tuple[float, ...] = ()
    """Scores at the last validation of each finished trial."""
    fold_count: int | None = None
    """Number of folds of the cross-validation; None if there is none."""
    failed_seeds: tuple[Hashable, ...] = ()
    """Those of trials that failed, or finished without a finite score. Then the point is unstable:
    it ranks behind every stable one, whatever the mean of its other seeds."""

    @property
    def trial_count(self) -> int:
        """Number of trials that ended, with a score or without."""
        return len(self.scores) + len(self.failed_seeds)

    @property
    def scores_by_seed(self) -> dict[Hashable, float]:
        """Scores by seed, to be paired with those of another grid point; NaN for failed seeds."""
        scores = dict(zip(self.seeds, self.scores, strict=True))
        return scores | dict.fromkeys(self.failed_seeds, math.nan)

    def scores_by_fold(self) -> dict[Hashable, dict[Hashable, float]]:
        """Scores by (split seed, fold), then by training seed."""
        folds: dict[Hashable, dict[Hashable, float]] = {}
        for (seed, *fold), score in self.scores_by_seed.items():  # type: ignore[misc]
            folds.setdefault(tuple(fold), {})[seed] = score
        return folds

    @property
    def mean(self) -> float:
        """Mean of `scores`; NaN without any."""
        return float(np.mean(self.scores)) if self.scores else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN for one seed, or if a seed failed.

        It is corrected for folds that share data.
        """
        if self.failed_seeds:
            return math.nan
        if self.fold_count is not None:
            from neural.stats.folds import average_seeds, compute_standard_error

            fold_means = average_seeds(self.scores_by_fold())
            return compute_standard_error(list(fold_means.values()), self.fold_count)
        return (
            float(np.std(self.scores, ddof=1) / math.sqrt(len(self.scores)))
            if len(self.scores) > 1
            else math.nan
        )

    def estimate_mean(self) -> Estimate:
        """Mean of `scores` with its 95 % interval, over seeds or over folds.

        There is no interval if a seed failed: the mean of the others says nothing about all.
        """
        from neural.stats.estimate import Estimate
        from neural.stats.means import estimate_mean

        if self.failed_seeds:
            return Estimate(self.mean, n=len(self.scores))
        if self.fold_count is None:
            return estimate_mean(self.scores)
        from neural.stats.folds import average_seeds, estimate_fold_mean

        fold_means = average_seeds(self.scores_by_fold())
        return estimate_fold_mean(list(fold_means.values()), self.fold_count)

    @property
    def last_mean(self) -> float:
        """Mean of the scores at the last validation."""
        return float(np.mean(self.last_scores)) if self.last_scores else math.nan


@dataclass(frozen=True)
class Confirmation:
    """The selected setting and the runner-up, trained again with fresh seeds.

    Scores are those of the last validation. Neither setting nor step was chosen for these scores,
    so their means are not optimistic.
    """

    points: tuple[GridPoint, GridPoint]
    """The selected setting first, whichever is better now."""
    seeds: tuple[int, ...]
    estimates: tuple[Estimate, Estimate]
    """Mean score of each point, with its confidence interval over seeds."""
    comparison: PairedComparison
    """The runner-up against the selected setting."""


class Sweep:
    """The folder of a sweep; see `create_sweep` and `open_sweep`."""

    def __init__(
        self, path: Path, experiment: Path, settings: dict[str, Any], rows: list[TrialRecord]
    ) -> None:
        """`experiment` is the trials' experiment file, `settings` are those of the sweep file."""
        self.path, self.experiment, self.settings, self.rows = path, experiment, settings, rows
        self.samples: str | None = None
        """Settings of texts that language models generate at every validation, as YAML."""
        self.metadata: dict[str, Any] = {}
        """JSON data of the caller. The key `command` has the command that resumes the sweep."""
        self.writer: RunStatus | None = None
        """Status of the process that runs the sweep; None if there is none."""
        self.time = time.time()
        """When the table was last written, in seconds since 1970."""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    def create_job(self, row: TrialRecord) -> TrialJob:
        """The job of a trial, for a runner."""
        name = row.trial.name
        overrides = (*row.trial.overrides, f"name={name}")
        request = TrainRequest(str(self.experiment), overrides, samples=self.samples)
        return TrialJob(name, self.path, json.dumps(asdict(request)), train_worker.__name__)

    def refresh(self) -> None:
        """Update all rows from the trials' run folders."""
        for row in self.rows:
            self.refresh_row(row)

    def refresh_row(self, row: TrialRecord) -> None:
        """Update a row from the trial's run folder, if there is one."""
        path = self.create_job(row).find_run()
        if path is None:
            return
        row.run = path.name
        try:
            with Run.open(path) as run:
                status, best = run.status, find_best_validation(run)
                row.step, row.steps, row.last_score = (
                    status.step,
                    run.metadata("steps"),
                    load_last_score(run),
                )
        except RunError as error:
            row.reason = row.reason or str(error)
            return
        if best is not None:
            row.score, row.scores = best.score, best.scores
        if status.state == "finished":
            row.state, row.reason = "finished", ""
        elif status.state == "running" and row.state == "waiting":
            row.state = "running"

    def write(self, *, durable: bool = True) -> None:
        """Write the table atomically; `durable` waits until it is on disk."""
        self.time = time.time()
        data = {
            "version": TABLE_VERSION,
            "experiment": str(self.experiment),
            "settings": self.settings,
            "time": self.time,
            "samples": self.samples,
            "metadata": self.metadata,
            "writer": asdict(replace(self.writer, time=self.time)) if self.writer else None,
            "trials": [asdict(row) for row in self.rows],
        }
        with translate_errors(f"{self.path} cannot be written"):
            write_atomically(
                self.path / TRIALS_FILE,
                json.dumps(data, indent=1, ensure_ascii=False) + "\n",
                durable=durable,
            )

    def count_states(self) -> dict[str, Any]:
        """State of the sweep, and the number of trials in each state."""
        states = [row.state for row in self.rows]
        unfinished_states = ("running", "failed", "stopped", "waiting")
        counts = {name: states.count(name) for name in ("finished", *unfinished_states)}
        # the sweep has the first of these states that a trial has
        state = next((name for name in unfinished_states if counts[name]), "finished")
        if self.writer is not None:
            state = "running"
        elif state == "waiting":
            state = "stopped"
        return {"state": state, "trials": len(states), **counts, "time": self.time}

    @property
    def unfinished(self) -> list[TrialRecord]:
        """Trials that a resumed sweep would run."""
        return [row for row in self.rows if not row.is_finished]

    def selection_metric(self) -> tuple[str, bool]:
        """The metric that ranks trials, and whether larger is better."""
        for row in self.rows:
            if row.run is not None:
                with Run.open(self.path / row.run) as run:
                    return get_monitored_metric(str(run.settings.get("task", "")))
        return get_monitored_metric("")

    def rank_rows(self) -> list[TrialRecord]:
        """Trials, best score first; those without a score last."""
        _, larger_is_better = self.selection_metric()
        return sorted(
            self.rows,
            key=lambda row: _rank_key(row.score if row.is_finished else None, larger_is_better),
        )

    def rank_points(self) -> list[GridPoint]:
        """Grid points, best mean first, without confirmation trials.

        Points with failed seeds come after all others, those with the smallest share first.
        """
        _, larger_is_better = self.selection_metric()
        points = _group_points([row for row in self.rows if not row.is_confirmation])
        return sorted(
            points,
            key=lambda point: (
                len(point.failed_seeds) / max(1, point.trial_count),
                *_rank_key(point.mean, larger_is_better),
            ),
        )

    def compare_with_best(self, points: Sequence[GridPoint]) -> list[PairedComparison]:
        """Compare every other point with the first, the best one, by pairs of equal seeds.

        `is_selected` is a stricter test, because the best point was selected by the same scores.
        """
        # imports scipy, which listing a sweep does not need
        from neural.stats.comparisons import compare_pairs

        _, larger_is_better = self.selection_metric()
        if self.fold_count is not None:
            from neural.stats.folds import compare_folds

            by_fold = [point.scores_by_fold() for point in points]
            return compare_folds(
                by_fold[1:], by_fold[0], self.fold_count, larger_is_better=larger_is_better
            )
        scores = [point.scores_by_seed for point in points]
        return compare_pairs(
            scores[1:], scores[0], larger_is_better=larger_is_better, is_selected=True
        )

    def estimate_selection_bias(self, points: Sequence[GridPoint]) -> SelectionBias | None:
        """Estimate how much too good the score of the best point is, because it was selected by it.

        None if there was nothing to select from: fewer than two points with scores.
        """
        from neural.stats.power import estimate_selection_bias

        point_scores = [point.scores_by_seed for point in points if point.scores]
        return estimate_selection_bias(point_scores) if len(point_scores) > 1 else None

    @property
    def fold_count(self) -> int | None:
        """Number of folds of the cross-validation; None if the sweep is none."""
        folds = [Fold.parse(str(row.trial.point.get(FOLD_KEY))) for row in self.rows]
        return next((fold.count for fold in folds if fold is not None), None)

    def summarize_folds(self, point: GridPoint) -> dict[str, Estimate]:
        """Means over the finished folds of a point by metric, at the best validation of each.

        Each has an interval that is corrected for folds that share training examples. The key
        `last` has the ranking metric at the last validation. Empty without folds.
        """
        from neural.stats.folds import average_seeds, estimate_fold_mean

        fold_count = self.fold_count
        values: dict[str, dict[Hashable, dict[Hashable, float]]] = {}
        for row in self.rows:
            if row.is_confirmation or not row.is_finished or _grid_values(row) != point.values:
                continue
            seed, *fold = _pairing_key(row)
            for name, score in {**row.scores, "last": row.last_score}.items():
                if score is not None:
                    values.setdefault(name, {}).setdefault(tuple(fold), {})[seed] = score
        return {
            name: estimate_fold_mean(list(average_seeds(by_fold).values()), fold_count).to_score(
                self.selection_metric()[0] if name == "last" else name
            )
            for name, by_fold in values.items()
            if fold_count is not None
        }

    def add_confirmation(self, count: int) -> list[TrialRecord]:
        """Add trials of the selected setting and the runner-up with `count` fresh seeds.

        A second call with the same count adds nothing. Another count raises RunError: adding seeds
        until a result is decided makes the intervals too narrow.
        """
        confirming = [row for row in self.rows if row.is_confirmation]
        if confirming:
            earlier = len({row.trial.seed for row in confirming})
            if earlier != count:
                raise RunError(
                    f"{self.path} is already confirmed with {earlier} fresh seeds: --confirm {earlier}"
                )
            return []
        ranked = [point for point in self.rank_points() if point.scores]
        if len(ranked) < 2:
            raise RunError(
                f"{self.path} has fewer than two settings with scores: nothing to confirm"
            )
        first_seed = 1 + max(row.trial.seed for row in self.rows)
        seeds = range(first_seed, first_seed + count)
        # one trial per split seed of each of the two settings, to be repeated with each fresh seed
        templates = []
        for point in ranked[:2]:
            same_point = [row.trial for row in self.rows if _grid_values(row) == point.values]
            templates += [trial for trial in same_point if trial.seed == same_point[0].seed]
        confirming = [
            TrialRecord(trial, is_confirmation=True) for trial in reseed_trials(templates, seeds)
        ]
        self.rows += confirming
        return confirming

    def summarize_confirmation(self) -> Confirmation | None:
        """Results of the fresh seeds; None until a trial of both settings ended with one."""
        from neural.stats.comparisons import compare_pairs

        rows = [row for row in self.rows if row.is_confirmation]
        points = _group_points(rows, use_last_score=True)
        if len(points) != 2 or not all(point.trial_count for point in points):
            return None
        metric, larger_is_better = self.selection_metric()
        selected, runner_up = points
        if self.fold_count is not None:
            from neural.stats.folds import compare_folds

            (comparison,) = compare_folds(
                [runner_up.scores_by_fold()],
                selected.scores_by_fold(),
                self.fold_count,
                larger_is_better=larger_is_better,
            )
        else:
            (comparison,) = compare_pairs(
                [runner_up.scores_by_seed],
                selected.scores_by_seed,
                larger_is_better=larger_is_better,
            )
        return Confirmation(
            points=(selected, runner_up),
            seeds=tuple(sorted({row.trial.seed for row in rows})),
            estimates=(
                selected.estimate_mean().to_score(metric),
                runner_up.estimate_mean().to_score(metric),
            ),
            comparison=comparison,
        )


def create_sweep(
    root: Path,
    name: str,
    settings: Settings,
    experiment: Path,
    trials: list[Trial],
    *,
    samples: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> Sweep:
    """Create the folder of a sweep in `root`, atomically and with its table.

    `settings` is a `SweepSettings` or `StudySettings`; `run_sweep` reads its `retries`. `samples`
    and `metadata` are explained in `Sweep`.
    """
    root, now = root.absolute(), time.time()
    temporary = root / f".new-{os.getpid()}-{time.time_ns()}"
    sweep = Sweep(
        temporary, experiment, dump_settings(settings), [TrialRecord(trial) for trial in trials]
    )
    sweep.samples, sweep.metadata = samples, metadata or {}
    with translate_errors(f"no sweep can be created in {root}"):
        try:
            temporary.mkdir(parents=True)
            overrides = [override for trial in trials for override in trial.overrides]
            if has_secrets([sweep.settings, sweep.metadata], overrides):
                # the table keeps them: a sweep that is resumed needs them
                temporary.chmod(PRIVATE_FOLDER_MODE)
            sweep.write()
            sweep.path = publish_folder(temporary, root, name, now)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return sweep


def open_sweep(path: Path) -> Sweep:
    """Open the sweep in a folder, as its table was last written. Raises RunError."""
    path = path.absolute()
    if not (path / TRIALS_FILE).is_file():
        raise RunError(f"{path} is not the folder of a sweep: it has no {TRIALS_FILE}")
    data = read_json_file(path / TRIALS_FILE)
    if type(data.get("version")) is int and data["version"] > TABLE_VERSION:
        raise RunError(
            f"{path} was written by a newer version of neural (its table has version {data['version']})"
        )
    try:
        rows = [_parse_row(record) for record in data["trials"]]
        sweep = Sweep(path, Path(data["experiment"]), data["settings"], rows)
        sweep.samples, sweep.metadata = data.get("samples"), data.get("metadata", {})
        sweep.time, writer = (
            float(data["time"]),
            status_from_dict(data["writer"]).check_alive() if data["writer"] else None,
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise RunError(f"{path / TRIALS_FILE} is damaged: {error!r}") from error
    if writer is not None and writer.state == "running":
        sweep.writer = writer
        return sweep
    for row in rows:  # the sweep's process was killed before it could update the table
        row.state = "stopped" if row.state == "running" else row.state
    return sweep


def find_sweep(name: str | None, root: Path, *, choose: Choose | None = None) -> Path:
    """Find a sweep by its path, its folder name or a part of it; without a name, the newest."""
    return find_folder(name, root, (TRIALS_FILE,), "sweep", choose)


def find_run_or_sweep(
    name: str | None, root: Path, *, choose: Choose | None = None, is_changed: bool = False
) -> Path:
    """Find a run or a sweep, as `find_run`; without a name, the newest of both."""
    markers = (RUN_MARKER, TRIALS_FILE)
    return find_folder(name, root, markers, "run", choose, is_changed=is_changed)


def resolve_run_paths(
    names: Sequence[str],
    root: Path,
    *,
    only_finished: bool = False,
    choose: Choose | None = None,
) -> list[Path]:
    """Paths of the named runs, each once; a sweep stands for its trials.

    Without names: the newest run or sweep in `root`.
    """
    paths: list[Path] = []
    for name in names or (None,):
        path = find_run_or_sweep(name, root, choose=choose)
        if not (path / TRIALS_FILE).exists():
            paths.append(path)
            continue
        rows = [row for row in open_sweep(path).rows if row.is_finished or not only_finished]
        trial_paths = [path / row.run for row in rows if row.run]
        if not trial_paths:
            raise RunError(f"{path} has no {'finished trial' if only_finished else 'run'} yet")
        paths += trial_paths
    return list(dict.fromkeys(paths))


def _parse_row(data: dict[str, Any]) -> TrialRecord:
    """A row of trials.json, checked: the folder may come from an untrusted source."""
    saved_trial = data["trial"]
    trial = Trial(
        saved_trial["name"],
        saved_trial["seed"],
        saved_trial["point"],
        tuple(saved_trial["overrides"]),
    )
    row = TrialRecord(trial, **{name: value for name, value in data.items() if name != "trial"})
    field_types = {
        "state": str,
        "reason": str,
        "attempts": int,
        "run": str | None,
        "step": int,
        "steps": int | None,
        "score": int | float | None,
        "scores": dict,
        "last_score": int | float | None,
        "is_confirmation": bool,
    }
    wrong_fields = [
        name
        for name, field_type in field_types.items()
        if not isinstance(getattr(row, name), field_type)
    ]
    has_valid_texts = all(isinstance(text, str) for text in (trial.name, *trial.overrides))
    if wrong_fields or not has_valid_texts or not isinstance(trial.point, dict):
        raise TypeError(", ".join(wrong_fields) or "a trial")
    if {trial.name, row.run or "run"} & {"", ".", ".."} or "/" in trial.name + (row.run or ""):
        raise ValueError("a trial is outside of the folder")
    return row


def count_points(trials: Sequence[Trial]) -> int:
    """Number of different combinations of grid values, without split seeds and folds."""
    return len({json.dumps(_grid_values(TrialRecord(trial))) for trial in trials})


def _group_points(rows: Sequence[TrialRecord], *, use_last_score: bool = False) -> list[GridPoint]:
    """Group rows by grid values; scores of the best validations, or of the last ones."""
    groups: dict[str, list[TrialRecord]] = {}
    has_scores = any(row.score is not None for row in rows)  # otherwise nothing is validated
    for row in rows:
        groups.setdefault(json.dumps(_grid_values(row)), []).append(row)
    points = []
    for group in groups.values():
        done = [row for row in group if row.is_finished]
        score = {_pairing_key(row): row.last_score if use_last_score else row.score for row in done}
        scored = {
            seed: value
            for seed, value in score.items()
            if value is not None and math.isfinite(value)
        }
        ended = [
            _pairing_key(row)
            for row in group
            if row.state == "failed" or (row.is_finished and has_scores)
        ]
        last_scores = tuple(row.last_score for row in done if row.last_score is not None)
        fold = Fold.parse(str(group[0].trial.point.get(FOLD_KEY)))
        points.append(
            GridPoint(
                _grid_values(group[0]),
                tuple(scored.values()),
                tuple(scored),
                last_scores,
                None if fold is None else fold.count,
                tuple(seed for seed in ended if seed not in scored),
            )
        )
    return points


def _grid_values(row: TrialRecord) -> dict[str, Any]:
    """The grid values of a trial without split seed and fold, if the grid has them.

    Trials that differ in a seed or a fold only are repetitions of one setting.
    """
    return {key: value for key, value in row.trial.point.items() if key not in REPETITION_KEYS}


def _pairing_key(row: TrialRecord) -> tuple[Hashable, ...]:
    """(training seed, split seed, fold). Trials with equal keys are paired in comparisons.

    They have the same initial weights, batches and held-out data.
    """
    return (row.trial.seed, *(row.trial.point.get(key) for key in REPETITION_KEYS))


def _rank_key(score: float | None, larger_is_better: bool) -> tuple[bool, float]:
    """Sort key: the best score first, missing, NaN and infinite scores last."""
    is_missing = score is None or not math.isfinite(score)
    return is_missing, 0.0 if score is None or is_missing else -score if larger_is_better else score


REFRESH_SECONDS = 2.0
"""Time between two readings of the running trials' folders."""


def run_sweep(
    sweep: Sweep, runner: Runner, on_progress: Callable[[TrialRecord], None] = lambda row: None
) -> None:
    """Run every unfinished trial.

    `on_progress` gets a row at every change of its state, and every few seconds while it trains.
    KeyboardInterrupt stops all trials after their current step and is raised again.
    """
    lock = RunLock.acquire(sweep.path / "lock", sweep.writer or RunStatus(state="running"))
    try:
        sweep.writer = current_status("running")
        _SweepLoop(sweep, runner, on_progress).run()
    finally:
        sweep.writer = None
        sweep.refresh()
        sweep.write()
        lock.release()


class _SweepLoop:
    """Queue of waiting trials, and the trials that were handed to the runner."""

    def __init__(
        self, sweep: Sweep, runner: Runner, on_progress: Callable[[TrialRecord], None]
    ) -> None:
        self.sweep, self.runner, self.on_progress = sweep, runner, on_progress
        self.retries: int = sweep.settings["retries"]
        sweep.refresh()
        self.queue = sweep.unfinished
        # attempts since this process started: `retries` is counted anew when a sweep resumes
        self.session_attempts = dict.fromkeys((row.trial.name for row in self.queue), 0)
        self.running_jobs: dict[TrialJob, TrialRecord] = {}
        self.last_refresh = time.monotonic()
        for row in self.queue:
            row.state, row.reason = "waiting", ""

    def run(self) -> None:
        """Run until all trials are done."""
        self.sweep.write()
        try:
            while self.queue or self.running_jobs:
                while self.queue and self.runner.has_capacity:
                    self.start(self.queue.pop(0))
                for job, result in self.runner.poll_finished():
                    self.finish_attempt(self.running_jobs.pop(job), result)
                self.refresh_running()
        except KeyboardInterrupt:
            try:
                self.runner.stop()
            finally:  # also after a second interrupt
                for row in self.running_jobs.values():
                    row.state = (
                        "stopped"
                        if row.state == "running" or self.sweep.create_job(row).find_run()
                        else "waiting"
                    )
            raise

    def start(self, row: TrialRecord) -> None:
        """Start an attempt at a trial."""
        job = self.sweep.create_job(row)
        self.session_attempts[row.trial.name] += 1
        row.attempts += 1
        self.running_jobs[job] = row
        self.runner.start(job)
        if self.runner.starts_immediately:
            row.state = "running"
            self.record_change(row)

    def finish_attempt(self, row: TrialRecord, job_result: TrialResult) -> None:
        """Record the result of an attempt; queue a failed trial again, up to `retries` times.

        A refused trial (say, with a wrong setting) would fail again and is not retried.
        """
        row.state, row.reason = (
            ("finished" if job_result.state == "finished" else "failed"),
            job_result.reason,
        )
        self.sweep.refresh_row(row)
        self.record_change(row)
        if (
            row.state == "failed"
            and job_result.state != "refused"
            and self.session_attempts[row.trial.name] <= self.retries
        ):
            row.state = "waiting"
            self.queue.append(row)

    def refresh_running(self) -> None:
        """Read the progress of running trials every few seconds."""
        if time.monotonic() - self.last_refresh < REFRESH_SECONDS:
            return
        self.last_refresh = time.monotonic()
        for row in self.running_jobs.values():
            previous_state = row.state
            self.sweep.refresh_row(row)
            if row.state == "finished":  # recorded by finish_attempt once the process has ended
                row.state = "running"
            if row.state != previous_state:
                self.record_change(row)
            self.on_progress(row)
        self.sweep.write(durable=False)

    def record_change(self, row: TrialRecord) -> None:
        """Write the table first, then call `on_progress`."""
        self.sweep.write()
        self.on_progress(row)
