"""How a trained focus model did on examples it never saw, as a small file beside the runs; and where its curve stood.

`neural dynamics` writes one for each run that it compares: `dynamics/<run>.npz`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.files import replacing
from neural.core.plain_json import read_json
from neural.tasks.data.array_files import arrays_in
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.views.seeds import Estimate, number, over_seeds

LEVEL = 0.9
"""The accuracy that is to be reached soon."""
TIMES = ("steps_to", "seconds_to", "switched")
"""Scores in which NaN means "never": a mean would forget the seeds that never got there."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One run."""

    run: str
    """The folder's name."""
    paradigm: str
    segments: int
    seed: int
    classes: tuple[str, ...]
    scores: dict[str, float]
    """On the test examples; and `calls` of the classifier per example and step, steps and seconds to 90 % …"""
    heat: np.ndarray
    """Shares of examples over [0, 1]²: rows by focus on the foreground, columns by probability of the true class."""
    shown: dict[str, np.ndarray]
    """A few test examples: `x`, `focus`, `foreground`, `label`, `predicted`."""

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        about = {"run": self.run, "paradigm": self.paradigm, "segments": self.segments, "seed": self.seed,
                 "classes": self.classes, "scores": self.scores}  # fmt: skip
        arrays: dict[str, Any] = {f"shown_{name}": one for name, one in self.shown.items()}
        with replacing(path, durable=False) as file:
            np.savez(file, about=np.array(json.dumps(about)), heat=self.heat, **arrays)


def read_result(path: Path) -> Result:
    """What `write` wrote."""
    try:
        found = arrays_in(path)
        about: dict[str, Any] = read_json(str(found["about"]))
        shown = {name.removeprefix("shown_"): one for name, one in found.items() if name.startswith("shown_")}
        about["classes"] = tuple(about["classes"])
        return Result(**about, heat=found["heat"], shown=shown)
    except (TaskError, ValueError, KeyError, TypeError) as problem:
        raise RunError(f"{path} cannot be read: {problem}") from None


def speed(run: Run, level: float = LEVEL) -> dict[str, float]:
    """Steps and seconds until the validation accuracy reached a level (NaN: never), cost of a step, time of switch."""
    steps, accuracy = run.scalars("valid/accuracy")
    there = np.flatnonzero(accuracy >= level)
    first = float(steps[there[0]]) if len(there) else float("nan")
    status = run.status
    each = (status.time - status.started) / max(1, status.step)
    calls = run.scalars("train/classifier_calls")[1]
    switches = [step for step, kind, _, _ in run.events() if kind == "switch"]
    return {
        "steps_to": first, "seconds_to": first * each, "step_ms": 1000 * each, "calls": float(np.mean(calls)),
        "calls_range": float(np.ptp(calls)),   # 0 where the settings alone decide: soft, exact hard and lvml …
        "switched": switches[0] / max(1, status.step) if switches else float("nan"),
    }  # fmt: skip


Groups = dict[tuple[str, int], list[Result]]
"""By paradigm and m; those of a list differ by their seed alone."""


def grouped(results: Iterable[Result]) -> Groups:
    """In the order in which paradigms come first."""
    found: Groups = {}
    for one in results:
        found.setdefault((one.paradigm, one.segments), []).append(one)
    return {key: sorted(group, key=lambda one: one.seed) for key, group in found.items()}


def paradigms(groups: Groups) -> list[str]:
    """Without repetition."""
    return list(dict.fromkeys(name for name, _ in groups))


def sizes(groups: Groups) -> list[int]:
    """Every m, smallest first."""
    return sorted({m for _, m in groups})


def estimate(group: Sequence[Result], name: str) -> Estimate:
    """Mean over seeds with its interval."""
    return over_seeds(one.scores.get(name, float("nan")) for one in group)


def pairs(groups: Groups, first: str, second: str, m: int) -> list[tuple[Result, Result]]:
    """The results of two paradigms, seed by seed: both of a pair saw the same data."""
    by_seed = {result.seed: result for result in groups.get((second, m), [])}
    return [
        (result, by_seed[result.seed])
        for result in groups.get((first, m), [])
        if result.seed in by_seed
    ]


@dataclass(frozen=True, slots=True)
class TimeTo:
    """When something was reached, over seeds. A seed that never reached it counts as the latest."""

    median: float
    """Infinite where half of the seeds or more never reached it; NaN of no seeds."""
    reached: int
    seeds: int

    def __str__(self) -> str:
        middle = "never" if math.isinf(self.median) else number(self.median)
        return middle if self.reached == self.seeds else f"{middle} ({self.reached} of {self.seeds})"


def time_to(group: Sequence[Result], name: str) -> TimeTo:
    """Of one of `TIMES`."""
    times = [result.scores[name] for result in group if name in result.scores]
    late = sorted(math.inf if math.isnan(time) else time for time in times)
    if not late:
        return TimeTo(math.nan, 0, 0)
    # with an even number of seeds the mean of the two in the middle; infinite where one of them is
    middle = (late[(len(late) - 1) // 2] + late[len(late) // 2]) / 2
    return TimeTo(middle, sum(map(math.isfinite, late)), len(late))
