"""Test results of focus models: file format, grouping by paradigm and averages over seeds.

A focus model (tasks/focus) gives each of the m segments of an example a weight (together: the
focus) and classifies the segment with the largest; only the foreground segment shows the class. A
paradigm is the loss that trains it. Hybrid paradigms switch from one loss to another during
training.

`neural dynamics` writes one file for each run that it compares: `dynamics/<run>.npz`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neural.core.errors import TaskError
from neural.core.files import open_atomic
from neural.core.json_values import parse_json
from neural.data.numpy_files import load_npz
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.stats.estimate import Estimate, format_number
from neural.stats.means import estimate_mean

TARGET_ACCURACY = 0.9
"""Validation accuracy that counts as reached target in `steps_to_target`."""
RESULTS_FOLDER = "dynamics"
"""Folder beside the runs of a comparison, with the test result of each run."""
TIME_SCORES = ("steps_to_target", "seconds_to_target", "switch_share")
"""Scores in which NaN means "never"; they are summarized by `estimate_time_to_reach`.

A mean would ignore the seeds that never reached the target.
"""


@dataclass(frozen=True, kw_only=True)
class FocusResult:
    """Test result of one run."""

    run: str
    """Name of the run folder."""
    paradigm: str
    segments: int
    """Number of segments m of an example."""
    seed: int
    classes: tuple[str, ...]
    """Class names, by class index."""
    scores: dict[str, float]
    """Metrics of the test examples (tasks/focus/metrics.py), and the scores of `measure_speed`."""
    heat_map: np.ndarray
    """2-D histogram: shares of test examples, over [0, 1]².

    Rows are bins of the focus on the foreground, columns of the probability of the true class.
    """
    examples: dict[str, np.ndarray]
    """A few test examples: arrays `x`, `focus`, `foreground`, `label`, `predicted`.

    The first axis is the example; `x`, `focus` and `foreground` have segments as the second axis.
    """
    failed_seeds: int = 0
    """Trainings of the same paradigm and m that failed. Then the mean of the others decides
    nothing, and the paradigm ranks last. Not part of the file."""

    def write(self, path: Path) -> None:
        """Write the result atomically."""
        metadata = {
            "run": self.run,
            "paradigm": self.paradigm,
            "segments": self.segments,
            "seed": self.seed,
            "classes": self.classes,
            "scores": self.scores,
        }
        arrays: dict[str, Any] = {f"shown_{name}": array for name, array in self.examples.items()}
        with open_atomic(path, durable=False) as file:
            np.savez(file, about=np.array(json.dumps(metadata)), heat=self.heat_map, **arrays)


def read_result(path: Path) -> FocusResult:
    """Read a file of `FocusResult.write`; RunError where it is damaged."""
    try:
        arrays = load_npz(path)
        metadata: dict[str, Any] = parse_json(str(arrays["about"]))
        examples = {
            name.removeprefix("shown_"): array
            for name, array in arrays.items()
            if name.startswith("shown_")
        }
        metadata["classes"] = tuple(metadata["classes"])
        metadata["scores"] = {name: float(score) for name, score in metadata["scores"].items()}
        return FocusResult(**metadata, heat_map=arrays["heat"], examples=examples)
    except (TaskError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise RunError(f"{path} cannot be read: {problem}") from None


def load_results(runs: Sequence[Run]) -> tuple[list[FocusResult], Literal["test", "validation"]]:
    """Results of runs, and the data that they are of, which is the same for all.

    Test results are those that `neural dynamics` saved. If a run has none, or was trained further
    since, the results of all runs are their last validations. Runs without a validation are left
    out.
    """
    try:
        return [_read_test_result(run) for run in runs], "test"
    except (RunError, OSError):  # missing, outdated or damaged
        results = [summarize_validation(run) for run in runs]
        return [result for result in results if result is not None], "validation"


def _read_test_result(run: Run) -> FocusResult:
    """The test result of a run; RunError or OSError without one that is newer than the run."""
    path = run.path.parent / RESULTS_FOLDER / f"{run.path.name}.npz"
    if path.stat().st_mtime < (run.status.time or 0.0):
        raise RunError(f"{path} is older than the training of {run.name}")
    result = read_result(path)
    if result.paradigm != label_paradigm(run.settings):
        raise RunError(f"{path} is the result of another run")
    return result


def summarize_validation(run: Run) -> FocusResult | None:
    """The last validation of a run as a result, without examples; None if there is none."""
    names = [name for name in run.scalar_names() if name.startswith("valid/")]
    segments = _get_segments(run)
    if "valid/accuracy" not in names or not isinstance(segments, int):
        return None
    scores = {name.removeprefix("valid/"): float(run.scalars(name)[1][-1]) for name in names}
    with suppress(RunError):  # no training step was logged
        scores |= measure_speed(run)
    training = run.settings.get("training")
    seed = training.get("seed") if isinstance(training, dict) else None
    return FocusResult(
        run=run.name,
        paradigm=label_paradigm(run.settings),
        segments=segments,
        seed=seed if isinstance(seed, int) else 0,
        classes=tuple(run.metadata("focus/classes") or ()),
        scores=scores,
        heat_map=np.zeros((1, 1)),
        examples={},
    )


def count_failed_seeds(
    results: Iterable[FocusResult], failed_runs: Iterable[Run]
) -> list[FocusResult]:
    """The results, each with the number of failed runs of its paradigm and m."""
    counts = Counter((label_paradigm(run.settings), _get_segments(run)) for run in failed_runs)
    return [
        replace(result, failed_seeds=counts[result.paradigm, result.segments]) for result in results
    ]


def _get_segments(run: Run) -> Any:
    """The number of segments m; None if the run does not know it."""
    return run.metadata("focus/segments") or run.settings.get("segments")


def label_paradigm(settings: Mapping[str, Any]) -> str:
    """`soft`, or with an estimator and its number of samples: `hard, topk 2`.

    The estimator selects the segments that are classified in training; "exact" means all of them,
    and is left out of the label.
    """
    paradigm, estimator = str(settings.get("paradigm", "")), settings.get("estimator")
    return (
        paradigm
        if estimator in (None, "exact")
        else f"{paradigm}, {estimator} {settings.get('samples')}"
    )


def measure_speed(run: Run, target_accuracy: float = TARGET_ACCURACY) -> dict[str, float]:
    """Scores about the speed of a training.

    steps_to_target          training steps until `target_accuracy` is reached in validation, or NaN
    seconds_to_target        the same in seconds
    step_ms                  mean milliseconds of a step
    classifier_calls         classifier calls per example and step, mean over the steps
    classifier_calls_range   largest minus smallest number of these calls
    switch_share             share of the steps before the switch of a hybrid paradigm, or NaN
    """
    steps, accuracy = run.scalars("valid/accuracy")
    reached = np.flatnonzero(accuracy >= target_accuracy)
    first_step = float(steps[reached[0]]) if len(reached) else float("nan")
    status = run.status
    seconds_per_step = (status.time - status.started) / max(1, status.step)
    calls = run.scalars("train/classifier_calls")[1]
    # an event is (step, kind, text, time)
    switches = [step for step, kind, _, _ in run.events() if kind == "switch"]
    return {
        "steps_to_target": first_step,
        "seconds_to_target": first_step * seconds_per_step,
        "step_ms": 1000 * seconds_per_step,
        "classifier_calls": float(np.mean(calls)),
        # 0 if the settings alone determine the calls, as with the paradigms `soft` and `lvml`
        "classifier_calls_range": float(np.ptp(calls)),
        "switch_share": switches[0] / max(1, status.step) if switches else float("nan"),
    }


FocusGroups = dict[tuple[str, int], list[FocusResult]]
"""Results by (paradigm, number of segments m); the results of a list differ only by their seed."""


def group_results(results: Iterable[FocusResult]) -> FocusGroups:
    """Group by paradigm and m, in the order of first occurrence; groups are sorted by seed."""
    groups: FocusGroups = {}
    for result in results:
        groups.setdefault((result.paradigm, result.segments), []).append(result)
    return {key: sorted(group, key=lambda result: result.seed) for key, group in groups.items()}


def list_paradigms(groups: FocusGroups) -> list[str]:
    """Distinct paradigms, in the order of the groups."""
    return list(dict.fromkeys(name for name, _ in groups))


def list_segment_counts(groups: FocusGroups) -> list[int]:
    """The distinct numbers of segments m, ascending."""
    return sorted({m for _, m in groups})


def estimate_score(group: Sequence[FocusResult], name: str) -> Estimate:
    """Mean of a score over seeds with its interval."""
    return estimate_mean(result.scores.get(name, float("nan")) for result in group).to_score(name)


def pair_by_seed(
    groups: FocusGroups, first: str, second: str, m: int
) -> list[tuple[FocusResult, FocusResult]]:
    """Results of two paradigms with m segments, paired by seed.

    Runs with the same seed have the same data. Seeds that only one paradigm has are left out.
    """
    by_seed = {result.seed: result for result in groups.get((second, m), [])}
    return [
        (result, by_seed[result.seed])
        for result in groups.get((first, m), [])
        if result.seed in by_seed
    ]


@dataclass(frozen=True, slots=True)
class TimeToReach:
    """Median time to a target over seeds. A seed that never reached it counts as the latest."""

    median: float
    """Infinite if half of the seeds or more never reached it; NaN without seeds."""
    reached_seeds: int
    """Seeds that reached the target."""
    seeds: int
    """All seeds."""

    def __str__(self) -> str:
        median = "never" if math.isinf(self.median) else format_number(self.median)
        if self.reached_seeds == self.seeds:
            return median
        return f"{median} ({self.reached_seeds} of {self.seeds})"


def estimate_time_to_reach(group: Sequence[FocusResult], name: str) -> TimeToReach:
    """Median over seeds of the score `name`, one of `TIME_SCORES`."""
    times = [result.scores[name] for result in group if name in result.scores]
    ordered = sorted(math.inf if math.isnan(time) else time for time in times)
    if not ordered:
        return TimeToReach(math.nan, 0, 0)
    # for an even number of seeds this is the mean of the two middle times, infinite if one is
    median = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return TimeToReach(median, sum(map(math.isfinite, ordered)), len(ordered))
