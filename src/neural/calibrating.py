"""A run's probabilities against what came true on documents that it has not learned from; what helps goes into the run.

    found = calibrate(run)            chosen, fitted, saved as calibration.json
    print(found.boundary.table())
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural.held_out import HeldOut, held_out, targets_of
from neural.segmenting import Cutter, cutter_of_run, weights_of
from neural.tasks.cutting.calibration_choice import Choice, choose, questions
from neural.tasks.cutting.calibration_file import Calibrated
from neural.tasks.cutting.clusters import Clusters
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.trouble import in_words
from neural.views.reliability_plot import reliability_plot

DIAGRAMS = {"boundary": "P(a part begins)", "label": "confidence in the label"}
"""What is calibrated, and what its picture is called."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was found and where it was put."""

    calibrated: Calibrated
    held: HeldOut
    cutter: Cutter
    files: tuple[Path, ...]


def calibrate(
    run: Run, data: str | None = None, *, folds: int = 5, seed: int = 0, allow_duplicates: bool = False
) -> Outcome:
    """Every method, cross-fitted by document, on the validation part of the run's documents or on others.

    Saved in the run folder with the pictures; `segment`, `predict` and `evaluate` use it from then on. Documents that
    the run learned from are refused, unless `allow_duplicates`.
    """
    cutter = cutter_of_run(run, plain=True)
    held = held_out(run, "valid", data, allow_duplicates=allow_duplicates)
    said = [cutter.scores(one) for one in held.documents]
    if all(len(one) < 2 for one in held.documents):
        raise TaskError("nothing to calibrate on: every document has one element only, and no gap")
    margins = [cutter.margins(one) for one in said]
    clusters = Clusters.of(held.documents)
    boundary = choose(
        *questions(margins, held.truths), sources=clusters.pairs(gaps=True), folds=folds, seed=seed
    )
    targets = targets_of(held, cutter)
    label = None
    if targets is not None:
        label = choose(
            *questions(said, targets, boundaries=False), sources=clusters.pairs(gaps=False), folds=folds, seed=seed
        )
    threshold, f1 = best_threshold([boundary.calibration(one) for one in margins], held.truths)
    found = Calibrated(
        weights=weights_of(run), data=held.where, boundary=boundary, label=label, threshold=threshold, f1=f1
    )
    with in_words(f"the calibration cannot be saved in {run.path}"):
        files = [found.save(run.path), *pictures(found, run.path)]
    return Outcome(calibrated=found, held=held, cutter=cutter, files=tuple(files))


def pictures(found: Calibrated, folder: Path) -> list[Path]:
    """A reliability diagram of each, as SVG and PNG."""
    choices: dict[str, Choice | None] = {"boundary": found.boundary, "label": found.label}
    return [
        path
        for name, choice in choices.items() if choice is not None
        for path in reliability_plot(choice.diagrams, folder / f"reliability_{name}", title=DIAGRAMS[name])
    ]  # fmt: skip


def best_threshold(probabilities: Sequence[np.ndarray], truths: Sequence[np.ndarray]) -> tuple[float, float]:
    """The threshold with the best exact F1 over all documents together, and that F1.

    Halfway between two probabilities, so that one that comes back a rounding error away is not on the other side. One
    half where nothing is to be found.
    """
    p = np.concatenate([one[1:] for one in probabilities])
    true = np.concatenate([np.asarray(one)[1:] for one in truths]).astype(bool)
    order = np.argsort(-p, kind="stable")
    p, hits = p[order], np.cumsum(true[order])
    if len(p) == 0 or hits[-1] == 0:
        return 0.5, float(len(p) == 0 or hits[-1] == 0)
    f1 = 2 * hits / (np.arange(1, len(p) + 1) + hits[-1])
    below = np.append(p[1:], 0.0)
    f1[p == below] = -1.0   # equal probabilities are on the same side
    best = int(f1.argmax())
    smallest = 1e-9
    return float(np.clip((p[best] + below[best]) / 2, smallest, 1 - smallest)), float(f1[best])
