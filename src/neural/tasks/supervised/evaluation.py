"""Evaluate a supervised run: scores with intervals, beside a constant and a linear baseline.

A row is one prediction: an example, or a position of an example that is not padding. With several
sigmoid units, every unit is a yes-or-no row of its own. Rows of one example, or of one group of
examples, are correlated; intervals leave out whole groups (scores.py). A lift is the improvement
over a baseline on the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.escape import shorten
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Table, tabulate_scores
from neural.data.dataset import ExampleSplit
from neural.data.targets import (
    IGNORE_INDEX,
    BinaryTargets,
    ClassTargets,
    DistributionTargets,
    Targets,
)
from neural.nn.lazy_torch import torch
from neural.stats.estimate import Estimate
from neural.stats.jackknife import JackknifeScore
from neural.tasks.segmentation.calibration_error import (
    CalibrationErrors,
    ReliabilityDiagram,
    compute_reliability,
    estimate_calibration_errors,
    simulate_perfect_model,
)
from neural.tasks.segmentation.probability import compute_confidence
from neural.tasks.supervised.baselines import (
    MAX_TRAINING_NUMBERS,
    FittedRows,
    TargetKind,
    extract_features,
    predict_constant,
    predict_linear,
)
from neural.tasks.supervised.batch_inputs import find_real_predictions, get_model_inputs
from neural.tasks.supervised.evaluation_data import EvaluationExamples, load_evaluation_data
from neural.tasks.supervised.scores import (
    LOWER_IS_BETTER,
    SCORE_LABELS,
    count_confusions,
    create_interval,
    estimate_class_scores,
    estimate_lift,
    estimate_value_scores,
)
from neural.tasks.task import TrainedRun

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    Scores = Mapping[str, Estimate]

BATCH_SIZE = 256
"""Examples per forward pass."""
MAX_PRINTED_CLASSES = 12
"""The confusion matrix is printed for up to this many classes; the JSON always has it."""
MAX_CLUSTERED_GROUPS = 20_000
"""With more groups, the simulation of a perfectly calibrated model treats rows as independent."""
RUN_NAME = "this run"


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionRows:
    """Predictions and labels of a split, without padding."""

    kind: TargetKind
    truth: NDArray
    """As in `FittedRows`."""
    examples: NDArray[np.int64]
    """Index of the example of each row."""
    features: Any
    """Inputs of the linear baseline; None if there is none."""
    outputs: NDArray[np.float64] | None = None
    """Probabilities of the classes (rows, C) or units (rows, units), or values (rows, units)."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How well the probability of the predicted class agrees with how often it is right."""

    errors: CalibrationErrors
    perfect_model: Estimate
    """Plain error that a perfectly calibrated model has by chance: mean, and 90 % range."""
    reliability: ReliabilityDiagram

    @property
    def is_rejected(self) -> bool:
        """Whether the plain error is above that of 95 % of perfectly calibrated models."""
        return self.errors.plain.value > self.perfect_model.high

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        names = ("plain", "equal_mass", "debiased")
        return {
            "ece": {name: getattr(self.errors, name).to_dict() for name in names},
            "perfect_model": self.perfect_model.to_dict(),
            "is_rejected": self.is_rejected,
            "reliability": self.reliability.to_dict(),
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class SupervisedEvaluation(Result):
    """Scores of a run and of the baselines."""

    run_name: str
    description: str
    """What was scored: `180 validation examples of digits`."""
    scores: Mapping[str, Scores]
    """By predictor (`this run`, then the baselines) and name of the score."""
    lifts: Mapping[str, Scores]
    """Improvement over each baseline; above 0 is better for every score."""
    interval_basis: str
    """What the jackknife leaves out: `180 examples`."""
    classes: tuple[str, ...] = ()
    """Class names; empty for regression."""
    confusion: NDArray[np.int64] | None = None
    """(C, C): true class by predicted class; None for regression."""
    calibration: Calibration | None = None
    notes: tuple[str, ...] = ()

    def build_dict(self) -> dict[str, Any]:
        """Scores of the run and the baselines, lifts, confusions, calibration."""
        return {
            "run": self.run_name,
            "data": self.description,
            "rows": self.scores,
            "lifts": self.lifts,
            "better": {
                name: "low" if name in LOWER_IS_BETTER else "high" for name in self.scores[RUN_NAME]
            },
            "interval_basis": self.interval_basis,
            "classes": self.classes,
            "confusion": self.confusion,
            "calibration": self.calibration,
            "notes": self.notes,
        }

    @property
    def tables(self) -> dict[str, Table]:
        """`scores` of the run and the baselines."""
        return {"scores": tabulate_scores(self.scores)}

    def to_sections(self, width: int) -> list[PageSection]:
        """Tables of scores, lifts and confusions."""
        sections = [self._score_section()]
        if self.lifts:
            sections.append(self._lift_section())
        if self.confusion is not None and 1 < len(self.confusion) <= MAX_PRINTED_CLASSES:
            sections.append(self._confusion_section(width))
        return sections

    def _score_section(self) -> PageSection:
        baselines = [name for name in self.scores if name != RUN_NAME]
        rows: list[tuple[str, ...]] = []
        for name, score in self.scores[RUN_NAME].items():
            others = [self.scores[baseline].get(name) for baseline in baselines]
            rows.append(
                (
                    SCORE_LABELS[name],
                    score.format_value(),
                    score.format_interval(),
                    *("–" if other is None else other.format_value() for other in others),
                )
            )
        lines = [f"on {self.description}", *(f"note: {note}" for note in self.notes)]
        if self.calibration is not None:
            error, perfect = self.calibration.errors, self.calibration.perfect_model
            rows.append(
                (
                    "debiased ECE",
                    error.debiased.format_value(),
                    error.debiased.format_interval(),
                    *("–" for _ in baselines),
                )
            )
            verdict = "not calibrated: " if self.calibration.is_rejected else ""
            lines.append(
                f"{verdict}ECE {error.plain.value:.3f}; a calibrated model has up to "
                f"{perfect.high:.3f} by chance\n(debiased ECE: root mean square, without the part that chance adds)"
            )
        return PageSection(
            title=self.run_name,
            text="\n".join(lines),
            table_head=("", RUN_NAME, "95 % interval", *baselines),
            table_rows=rows,
        )

    def _lift_section(self) -> PageSection:
        baselines = list(self.lifts)
        rows = []
        for name in self.scores[RUN_NAME]:
            lifts = [self.lifts[baseline].get(name) for baseline in baselines]
            cells = ["–" if lift is None else lift.format(signed=True) for lift in lifts]
            rows.append((SCORE_LABELS[name], *cells))
        return PageSection(
            title="lift",
            text="improvement over a baseline; above 0 is better for every score\n"
            f"95 % intervals by jackknife over {self.interval_basis}",
            table_head=("", *(f"over {baseline}" for baseline in baselines)),
            table_rows=rows,
        )

    def _confusion_section(self, width: int) -> PageSection:
        assert self.confusion is not None
        max_label = max(4, (width - 16) // len(self.confusion) - 2)
        names = [shorten(name, max_label) for name in self.classes]
        return PageSection(
            title="confusions",
            text="true classes by row, predicted classes by column",
            table_head=("", *names),
            table_rows=[
                (shorten(name, 12), *(str(count) if count else "·" for count in row))
                for name, row in zip(self.classes, self.confusion.tolist(), strict=True)
            ],
        )


def evaluate(
    run: TrainedRun, data: Any = None, *, allow_duplicates: bool = False
) -> SupervisedEvaluation:
    """Evaluate on the run's test examples, else its validation examples, or on `data`.

    `data` is a file, a folder or a data set with labels, or arrays in memory. Training examples in
    it are refused, unless `allow_duplicates`.
    """
    held_out = load_evaluation_data(run, data, allow_duplicates=allow_duplicates)
    model = run.load_model()
    notes, has_features = [*held_out.notes], held_out.train is not None
    rows = collect_rows(
        held_out, held_out.split, held_out.indices, model, has_features=has_features
    )
    assert rows.outputs is not None
    predictors = {RUN_NAME: rows.outputs}
    class_count = held_out.split.targets.output[-1]
    if held_out.train is not None:
        predictions, baseline_notes = predict_baselines(
            held_out, rows, class_count, has_linear=has_features
        )
        predictors |= predictions
        notes += baseline_notes
    _, groups = np.unique(held_out.groups[rows.examples], return_inverse=True)
    return score_predictors(rows, predictors, groups, held_out, run.name, tuple(notes))


def predict_baselines(
    data: EvaluationExamples, rows: PredictionRows, class_count: int, *, has_linear: bool = True
) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """Predictions of the baselines, fitted on the training examples; and notes.

    Without `has_linear` the constant baseline alone.
    """
    assert data.train is not None
    notes, indices = [], data.train_indices
    row_numbers = 1 if rows.features is None else max(1, rows.features.shape[1])
    if not isinstance(rows.features, np.ndarray) and rows.features is not None:
        row_numbers = max(1, rows.features.nnz // rows.features.shape[0])  # sparse
    row_numbers *= math.prod(data.split.targets.position_shape)
    max_examples = max(1, MAX_TRAINING_NUMBERS // row_numbers)
    if len(indices) > max_examples:
        rng = np.random.default_rng(0)
        indices = np.sort(rng.choice(indices, max_examples, replace=False))
        notes.append(f"the baselines are fitted to {max_examples:,} of the training examples")
    train = collect_rows(data, data.train, indices, None, has_features=has_linear)
    fitted = FittedRows(train.features, train.truth)
    constant_name = "mean" if rows.kind == "values" else "majority"
    count = len(rows.truth)
    predictions = {constant_name: predict_constant(rows.kind, fitted, count, class_count)}
    if not has_linear:
        return predictions, notes
    if rows.features is None or train.features is None:
        notes.append("there is no linear baseline for these inputs")
        return predictions, notes
    linear = predict_linear(rows.kind, fitted, rows.features, class_count)
    if linear is None:
        notes.append("there is no linear baseline: the training examples have a single class")
        return predictions, notes
    return {"linear": linear, **predictions}, notes


def collect_rows(
    data: EvaluationExamples,
    split: ExampleSplit,
    indices: NDArray[np.int64],
    model: nn.Module | None,
    *,
    has_features: bool = True,
) -> PredictionRows:
    """Labels, inputs and, with a model, its predictions of the examples `indices` of a split.

    Without `has_features` there are no inputs of the linear baseline.
    """
    batches = list(_iter_batch_rows(data, split, indices, model, has_features=has_features))
    truth, outputs, features, examples = zip(*batches, strict=True)
    return PredictionRows(
        kind=get_target_kind(split.targets),
        truth=np.concatenate(truth),
        outputs=None if model is None else np.concatenate(outputs),
        features=_stack_features(features),
        examples=np.concatenate(examples),
    )


def get_target_kind(targets: Targets) -> TargetKind:
    """The kind of the labels of a network."""
    if isinstance(targets, ClassTargets | DistributionTargets):
        return "classes"
    return "binary" if isinstance(targets, BinaryTargets) else "values"


def _iter_batch_rows(
    data: EvaluationExamples,
    split: ExampleSplit,
    indices: NDArray[np.int64],
    model: Any,
    *,
    has_features: bool,
) -> Iterator[tuple[NDArray, NDArray, Any, NDArray[np.int64]]]:
    """(truth, outputs, features, example numbers) of the rows of each batch."""
    network, targets = data.network, split.targets
    for start in range(0, len(indices), BATCH_SIZE):
        chosen = indices[start : start + BATCH_SIZE]
        batch = split.take(chosen)
        y = targets.to_loss_target(batch["y"])
        kind = get_target_kind(targets)
        if kind == "classes" and isinstance(targets, DistributionTargets):
            y = y.argmax(dim=-1)
        mask = find_real_predictions(
            network,
            batch,
            targets.position_shape,
            predicts_target_tokens=data.predicts_target_tokens,
        )
        is_row = np.ones(y.shape[: 1 + len(targets.position_shape)], dtype=bool)
        if mask is not None:
            is_row &= mask.numpy()
        if kind == "classes":
            is_row &= y.numpy() != IGNORE_INDEX
        input_mask = batch.get("mask")
        features = None
        if has_features:
            features = extract_features(
                batch,
                None if input_mask is None else input_mask.numpy(),
                network,
                targets.position_shape,
            )
        if features is not None and targets.position_shape:
            features = features[is_row.ravel()]
        outputs = np.empty(0)
        if model is not None:
            with torch.no_grad():
                logits = model.logits(*get_model_inputs(network, batch)).float()
                activation = {"classes": lambda x: x.softmax(dim=-1), "binary": torch.sigmoid}
                predicted = activation.get(kind, model.output_activation)(logits)
            outputs = predicted.double().numpy()[is_row]
            if data.target_scaler is not None:
                outputs = data.target_scaler.inverse_transform(outputs)
        examples = np.broadcast_to(
            np.arange(start, start + len(chosen)).reshape(-1, *(1,) * (is_row.ndim - 1)),
            is_row.shape,
        )
        yield y.numpy()[is_row], outputs, features, examples[is_row]


def _stack_features(batches: Sequence[Any]) -> Any:
    if any(features is None for features in batches):
        return None
    if isinstance(batches[0], np.ndarray):
        return np.concatenate(batches)
    from scipy import sparse

    return sparse.vstack(batches).tocsr()


def score_predictors(
    rows: PredictionRows,
    predictors: Mapping[str, NDArray[np.float64]],
    groups: NDArray[np.int64],
    data: EvaluationExamples,
    run_name: str,
    notes: tuple[str, ...],
) -> SupervisedEvaluation:
    """Scores, lifts, confusions and calibration of predictions by name, the run's first."""
    truth = rows.truth
    if rows.kind == "binary":
        # Every unit of every row becomes a row with two classes: no and yes.
        units = truth.shape[1]
        groups, truth = np.repeat(groups, units), truth.reshape(-1).astype(np.int64)
        predictors = {
            name: np.stack([1 - p.reshape(-1), p.reshape(-1)], axis=1)
            for name, p in predictors.items()
        }
        if units > 1:
            notes = (*notes, f"the {units} yes-or-no labels of a prediction are scored together")
    estimates: dict[str, dict[str, JackknifeScore]] = {
        name: estimate_value_scores(values, truth.astype(np.float64), groups)
        if rows.kind == "values"
        else estimate_class_scores(values, truth, groups)
        for name, values in predictors.items()
    }
    lifts = {
        baseline: {
            name: estimate_lift(name, estimate, estimates[baseline][name])
            for name, estimate in estimates[RUN_NAME].items()
            if name in estimates[baseline]
        }
        for baseline in estimates
        if baseline != RUN_NAME
    }
    group_count = int(groups.max()) + 1
    smallest_class = (
        int(np.unique(truth, return_counts=True)[1].min()) if rows.kind != "values" else 0
    )
    scores = {
        predictor: {
            name: create_interval(
                name, estimate, group_count if name == "accuracy" else smallest_class
            )
            for name, estimate in row.items()
        }
        for predictor, row in estimates.items()
    }
    unit = "group" if data.has_groups else "example"
    summary = {
        "run_name": run_name,
        "description": data.description,
        "scores": scores,
        "lifts": lifts,
        "interval_basis": f"{group_count:,} {unit}{'s' * (group_count != 1)}",
        "notes": notes,
    }
    if rows.kind == "values":
        return SupervisedEvaluation(**summary)
    probabilities = predictors[RUN_NAME]
    class_count = probabilities.shape[1]
    names = data.classes if len(data.classes) == class_count else ()
    return SupervisedEvaluation(
        **summary,
        classes=names or tuple(map(str, range(class_count))),
        confusion=count_confusions(truth, probabilities.argmax(axis=1), class_count),
        calibration=measure_calibration(probabilities, truth, groups),
    )


def measure_calibration(
    probabilities: NDArray[np.float64], truth: NDArray[np.int64], groups: NDArray[np.int64]
) -> Calibration:
    """Calibration of the predicted class, or of "yes" if there are two classes."""
    if probabilities.shape[1] == 2:
        p, hits = compute_confidence(probabilities[:, 1], truth)
    else:
        p, hits = compute_confidence(probabilities, truth)
    group_count = int(groups.max()) + 1
    is_clustered = group_count < len(groups) and group_count <= MAX_CLUSTERED_GROUPS
    perfect_model = (
        simulate_perfect_model(p, hits, groups) if is_clustered else simulate_perfect_model(p)
    )
    return Calibration(
        errors=estimate_calibration_errors(p, hits, groups),
        perfect_model=perfect_model,
        reliability=compute_reliability(p, hits, groups),
    )
