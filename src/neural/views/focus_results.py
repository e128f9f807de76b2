"""How a trained focus model did on examples it never saw, as a small file beside the runs; and where its curve stood.

`neural dynamics` writes one for each run that it compares: `dynamics/<run>.npz`.
"""

from __future__ import annotations

import json
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
from neural.views.seeds import Estimate, over_seeds

LEVEL = 0.9
"""The accuracy that is to be reached soon."""


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
    calls = float(np.mean(run.scalars("train/classifier_calls")[1]))
    switches = [step for step, kind, _, _ in run.events() if kind == "switch"]
    return {
        "steps_to": first, "seconds_to": first * each, "step_ms": 1000 * each, "calls": calls,
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


def paired(groups: Groups, one: str, other: str, name: str, m: int) -> list[float]:
    """What the first has more of than the second, seed by seed: both saw the same data."""
    second = {result.seed: result.scores.get(name, float("nan")) for result in groups.get((other, m), [])}
    return [result.scores.get(name, float("nan")) - second[result.seed] for result in groups.get((one, m), [])
            if result.seed in second]  # fmt: skip
