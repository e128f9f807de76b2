"""Base class of tasks trained by a paradigm: loss, schedule, classifier calls, predictions.

An example has m segments. Those that decide its label are the foreground. A focus network assigns
the segments weights that sum to 1, the focus; a classifier classifies segments. A paradigm
(paradigm.py) combines both into one loss. A hybrid is a paradigm that switches from one paradigm to
another during training. An estimator (estimator.py) selects the segments that are classified in
training. Base class of the tasks `focus` (one segment decides each label) and `captions` (one
region of a picture decides each word).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.errors import TaskError
from neural.core.experiment import Experiment, NonNegativeInt, PositiveInt
from neural.core.metadata_fields import TEXTS, MetadataField
from neural.data.sampler import BatchSampler
from neural.nn.lazy_torch import torch
from neural.tasks.focus import metrics, training_plan
from neural.tasks.focus.model import BATCHES_DONE, STAGE, SWITCH_BATCH
from neural.tasks.focus.paradigm import Paradigm, ParadigmProgress
from neural.tasks.focus.paradigms.hybrid import Hybrid
from neural.tasks.focus.segment_batch import SegmentBatch
from neural.tasks.focus.training_plan import FocusTrainingPlan, SegmentGrowth, create_plan
from neural.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.task import Batch

MAX_VALIDATION_SEGMENTS = 1 << 15
"""Largest number of segments in a validation batch; the batch size is chosen accordingly."""


class FocusTaskSettings(Experiment):
    """Settings common to all tasks trained by a paradigm."""

    paradigm: str = Field(
        "lvml",
        description="Loss that trains focus and classifier: `soft`, `renyi(tau=0.5)`, `auto` …",
    )
    estimator: str | None = Field(
        None, description="Selects the segments classified in training: `exact`, `topk` …"
    )
    samples: PositiveInt | None = Field(
        None,
        description="Segments the estimator selects per example; required unless it is `exact`.",
    )
    background: float = Field(
        0.0,
        ge=0,
        description="Weight of a loss that makes predictions on unfocused segments uniform; "
        "try 0.1.",
    )
    split_seed: NonNegativeInt = Field(
        0, description="Selects the examples held out; independent of `training.seed`."
    )
    threshold: float = Field(
        0.8,
        gt=0,
        lt=1,
        description="The metric SAIF counts examples whose focus on the foreground and whose "
        "probability of the label are both above this.",
    )

    # Keys that a resumed run cannot change, because they select its data.
    new_run_keys: ClassVar[frozenset[str]] = frozenset({"split_seed"})


def find_paradigm(paradigm: Paradigm, model: Any, experiment: Experiment, steps: int) -> Paradigm:
    """The paradigm in effect by `model.schedule_state`, in a training of so many steps."""
    # Each process counts its own batches.
    batches_per_step = experiment.training.gradient_accumulation_steps
    state = model.schedule_state
    steps_done = int(state[BATCHES_DONE]) // batches_per_step
    # A switch takes effect with the step after the batch that decided it.
    has_switched = bool(state[STAGE]) and int(state[SWITCH_BATCH]) <= steps_done * batches_per_step
    return paradigm.at_progress(ParadigmProgress(min(1.0, steps_done / steps), int(has_switched)))


class FocusTask(Task):
    """Base class of tasks whose loss is that of a paradigm."""

    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {"focus/classes": TEXTS}

    data: Any
    """`SegmentData` or `CaptionData`; examples are in its `splits`."""
    sampler: BatchSampler
    plan: FocusTrainingPlan
    """Paradigm, estimator and their settings."""
    steps: int
    """Total number of training steps."""
    threshold: float
    """SAIF is the share of examples whose focus on the foreground and P(label) are above this."""

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        super().__init__(experiment, folder, catalogue)
        self.notes = (self.plan.reason,) if self.plan.reason else ()
        self._events: list[tuple[str, str]] = []

    def set_up_training(
        self, experiment: FocusTaskSettings, *, classes: int, segments: int
    ) -> None:
        """Set sampler, steps and training plan. Raises TaskError for conflicting settings."""
        training, self.threshold = experiment.training, experiment.threshold
        self.sampler = BatchSampler(
            np.arange(len(self.data.splits["train"])), training.batch_size, training.seed
        )
        if training.label_smoothing:
            raise TaskError(
                f"`label_smoothing` is {training.label_smoothing}, but paradigms do not support "
                "it; leave it out"
            )
        self.steps = training.total_steps(self.batches_per_epoch)
        self.plan = create_plan(
            experiment.paradigm,
            experiment.estimator,
            experiment.samples,
            experiment.background,
            classes=classes,
            segments=segments,
            steps=self.steps,
            growth=self.resolve_growth(experiment, segments),
        )

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches in one pass over the training examples."""
        return self.sampler.batches_per_epoch

    def batch(self, index: int) -> Batch:
        """Training batch `index`."""
        return self.data.splits["train"].take(self.sampler[index])

    def probe_batch(self) -> Batch:
        """The first validation examples, whose attention is recorded during training."""
        return self.data.splits["valid"].take(slice(0, self.experiment.tracking.probe_size))

    def held_out_batch(self, count: int) -> Batch:
        """The first validation examples."""
        return self.data.splits["valid"].take(slice(0, count))

    def example_losses(self, model: Any, batch: Batch) -> Tensor:
        """−log P(label) of every example, in nats, as the paradigm predicts from all segments."""
        segments = self.score_batch(model, batch)
        return -segments.gather_label(self.current_paradigm(model).predict(segments))

    def target_classes(self, batch: Batch) -> Tensor:
        """The labels."""
        return batch["y"]

    def resolve_growth(self, experiment: FocusTaskSettings, segments: int) -> SegmentGrowth | None:
        """Growth of the number of segments during training; None if it is constant."""
        return None

    @abstractmethod
    def score_batch(self, model: Any, batch: Batch) -> SegmentBatch:
        """The batch as a `SegmentBatch` with focus scores; a row is one prediction problem."""

    @abstractmethod
    def foreground(self, batch: Batch) -> Tensor | None:
        """Foreground mask of the rows of `score_batch`. A row of False, or None, means unknown."""

    def segments_per_example(self) -> int:
        """Number of segments of one example."""
        return self.data.segments

    def current_paradigm(self, model: Any) -> Paradigm:
        """The paradigm in effect. It depends on `model.schedule_state`; constant within a step."""
        return find_paradigm(self.plan.paradigm, model, self.experiment, self.steps)

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss of the paradigm, and metrics to log.

        The metrics are classifier calls per row, the mean entropy of the focus in nats, and the
        mean foreground mass: the sum of the focus weights of the foreground.
        """
        model.classifier_calls = 0
        segments = self.score_batch(model, batch)
        paradigm = self.current_paradigm(model)
        losses = paradigm.loss(segments)
        with torch.no_grad():
            focus, foreground = paradigm.focus_weights(segments.scores), self.foreground(batch)
            curves = {"train/focus_entropy": focus_entropy(focus).mean()}
            if foreground is not None:
                is_known = foreground.any(dim=-1)
                mass = ((focus * foreground).sum(dim=-1) * is_known).sum() / is_known.sum().clamp(
                    min=1
                )
                curves["train/foreground_mass"] = mass
        if model.training:
            self._advance(model, segments)
        curves["train/classifier_calls"] = losses.new_tensor(model.classifier_calls / len(losses))
        return losses.mean(), curves

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Weights for averaging over batches: the number of rows.

        For `train/foreground_mass`, only rows with a known foreground count.
        """
        weights, foreground = {"loss": float(self.count_rows(batch))}, self.foreground(batch)
        if foreground is not None:
            weights["train/foreground_mass"] = float(foreground.any(dim=-1).sum())
        return weights

    def count_rows(self, batch: Batch) -> int:
        """Number of rows of `score_batch`: one per example."""
        return len(batch["y"])

    def pop_events(self) -> list[tuple[str, str]]:
        """Switches of a hybrid paradigm since the last call, as ("switch", reason)."""
        events, self._events = self._events, []
        return events

    def metadata(self) -> dict[str, Any]:
        """Paradigm, estimator, and the reason for the choice of `paradigm: auto`."""
        return {
            "focus/paradigm": repr(self.plan.paradigm).removesuffix("()"),
            "focus/reason": self.plan.reason,
            "focus/estimator": repr(self.plan.estimator).removesuffix("()"),
            "focus/samples": self.plan.samples,
        }

    def create_segment_batch(
        self,
        model: Any,
        x: Tensor,
        y: Tensor,
        mask: Tensor | None = None,
        members: Tensor | None = None,
    ) -> SegmentBatch:
        """Create a `SegmentBatch` with the estimator of the training plan.

        `x` are the segments, `y` the labels, `mask` is False for padding. If rows share segments,
        `x` holds each distinct segment once, and `members` are indices into it.
        """
        plan = self.plan
        return SegmentBatch(
            model,
            x,
            y,
            mask,
            estimator=plan.estimator,
            samples=plan.samples,
            background_weight=plan.background_weight,
            members=members,
        )

    def evaluate(self, model: Any) -> dict[str, float]:
        """All metrics on the validation examples."""
        scores = metrics.compute_scores(self.predict_split(model, "valid"), self.threshold)
        return {f"valid/{name}": value for name, value in scores.items()}

    def predict_split(self, model: Any, split: str) -> metrics.FocusPredictions:
        """Predictions for all examples of a split."""
        examples = self.data.splits[split]
        device = next(model.parameters()).device
        batches, batch_size = [], max(1, MAX_VALIDATION_SEGMENTS // self.segments_per_example())
        for start in range(0, len(examples), batch_size):
            batch = examples.take(slice(start, start + batch_size))
            batches.append(
                self._predict_batch(
                    model, {name: tensor.to(device) for name, tensor in batch.items()}
                )
            )
        arrays: dict[str, Any] = {
            name: np.concatenate([batch_arrays[name] for batch_arrays in batches])
            for name in batches[0]
        }
        unknown_foreground: dict[str, Any] = dict.fromkeys(("foreground_mass", "focus_correct"))
        return metrics.FocusPredictions(**{**unknown_foreground, **arrays})

    def _predict_batch(self, model: Any, batch: Batch) -> dict[str, np.ndarray]:
        """Fields of `FocusPredictions` as arrays; those of the foreground only if it is known."""
        segments, paradigm, foreground = (
            self.score_batch(model, batch),
            self.current_paradigm(model),
            self.foreground(batch),
        )
        focus, log_p = paradigm.focus_weights(segments.scores), paradigm.predict(segments)
        top_segment = focus.argmax(dim=-1, keepdim=True)
        argmax_logits = segments.logits(top_segment).squeeze(1)
        tensors = {
            "label": segments.y,
            "predicted": log_p.argmax(dim=-1),
            "likelihood": segments.gather_label(log_p).exp(),
            "confidence": log_p.amax(dim=-1).exp(),
            "argmax_predicted": argmax_logits.argmax(dim=-1),
            "max_focus": focus.amax(dim=-1),
            "entropy": focus_entropy(focus),
        }
        if foreground is not None:
            mass = (
                (focus * foreground).sum(dim=-1).masked_fill(~foreground.any(dim=-1), float("nan"))
            )
            tensors |= {
                "foreground_mass": mass,
                "focus_correct": foreground.gather(-1, top_segment).squeeze(-1),
            }
        return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}

    def _advance(self, model: Any, segments: SegmentBatch) -> None:
        """Count a trained batch, and switch a hybrid to its second paradigm if it is time."""
        model.schedule_state[BATCHES_DONE] += 1
        hybrid = self.plan.paradigm
        if isinstance(hybrid, Hybrid) and not model.schedule_state[STAGE]:
            batches_per_step = self.experiment.training.gradient_accumulation_steps
            reason = training_plan.check_switch(hybrid, segments, self.steps, batches_per_step)
            if reason is not None:
                self._events.append(("switch", reason))


def focus_entropy(focus: Tensor) -> Tensor:
    """Entropy of focus weights (…, m) in nats; 0 log 0 = 0."""
    return -torch.special.xlogy(focus, focus).sum(dim=-1)
