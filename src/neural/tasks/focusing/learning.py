"""Learning by a paradigm: the loss of the moment, the switches, the cost, and what the model makes of examples.

Shared by all tasks that look at segments: `focus` chooses one for a label, `captions` one for every word.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.modules.late import torch
from neural.tasks.data.order import Order
from neural.tasks.experiment import Count, Experiment, Interval
from neural.tasks.focusing import measures, switch
from neural.tasks.focusing.choice import Choice, chosen
from neural.tasks.focusing.growth import Growth
from neural.tasks.focusing.networks import DONE, STAGE, SWITCHED
from neural.tasks.focusing.paradigm import Moment, Paradigm
from neural.tasks.focusing.paradigms.hybrid import Hybrid
from neural.tasks.focusing.segments import Segments
from neural.tasks.task import Task, TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.task import Batch

ROWS = 1 << 15
"""Segments that a validation reads at once."""


class FocusExperiment(Experiment):
    """What all such tasks may say."""

    paradigm: str = Field("lvml", description="How focus and classifier are joined: `soft`, `renyi(tau=0.5)`, `auto` …")
    estimator: str | None = Field(None, description="Which segments are read in training: `exact`, `topk` …")
    samples: Count | None = Field(None, description="How many of them; needed by every estimator but `exact`.")
    background: float = Field(0.0, ge=0, description="Push of segments out of focus towards no class; 0.1 is usual.")
    split_seed: Interval = Field(
        0, description="Which examples are held out; `training.seed` does not move them."
    )
    threshold: float = Field(0.8, gt=0, lt=1, description="Of SAIF: focus and probability must be above it.")


    set_at_start: ClassVar[frozenset[str]] = frozenset({"split_seed"})


class FocusTask(Task):
    """A task whose loss is a paradigm's."""

    data: Any
    """What was read: `splits` of examples that can be taken."""
    order: Order
    choice: Choice
    steps: int
    """Of the whole training."""
    threshold: float

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        super().__init__(experiment, folder, catalogue)
        self.remarks = (self.choice.reason,) if self.choice.reason else ()
        self._news: list[tuple[str, str]] = []

    def decide(self, experiment: FocusExperiment, *, classes: int, segments: int) -> None:
        """In which order, how long, and by which paradigm; TaskError where that cannot be."""
        training, self.threshold = experiment.training, experiment.threshold
        self.order = Order(np.arange(len(self.data.splits["train"])), training.batch_size, training.seed)
        if training.label_smoothing:
            raise TaskError(f"`label_smoothing` is {training.label_smoothing}, but no paradigm smooths; leave it out")
        self.steps = training.total_steps(self.epoch)
        self.choice = chosen(
            experiment.paradigm, experiment.estimator, experiment.samples, experiment.background,
            classes=classes, segments=segments, steps=self.steps, growth=self.growth(experiment, segments),
        )  # fmt: skip

    @property
    def epoch(self) -> int:
        """Batches that go once through the training examples."""
        return self.order.epoch

    def batch(self, index: int) -> Batch:
        """The training batch of that number."""
        return self.data.splits["train"].take(self.order[index])

    def probe(self) -> Batch:
        """The first validation examples."""
        return self.data.splits["valid"].take(slice(0, self.experiment.tracking.probe_size))

    def growth(self, experiment: FocusExperiment, segments: int) -> Growth | None:
        """From how few segments examples grow; None where they do not."""
        return None

    @abstractmethod
    def given(self, model: Any, batch: Batch) -> Segments:
        """The examples of a batch as segments, with the scores of the focus."""

    @abstractmethod
    def foreground(self, batch: Batch) -> Tensor | None:
        """Which segments decide, in the rows of `given`: unknown in a row without any, and everywhere where None."""

    def rows(self) -> int:
        """Segments of one example."""
        return self.data.segments

    def now(self, model: Any) -> Paradigm:
        """The paradigm at this moment of a model's training: the same for all batches of a step."""
        per_step = self.experiment.training.gradient_accumulation_steps   # of this process
        done = int(model.history[DONE]) // per_step
        switched = bool(model.history[STAGE]) and int(model.history[SWITCHED]) <= done * per_step
        return self.choice.paradigm.at(Moment(min(1.0, done / self.steps), int(switched)))

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The paradigm's loss; calls of the classifier per example, focus entropy, and the focus on the foreground."""
        model.calls = 0
        given = self.given(model, batch)
        paradigm = self.now(model)
        losses = paradigm.loss(given)
        with torch.no_grad():
            focus, front = paradigm.focus(given.scores), self.foreground(batch)
            told = {"train/focus_entropy": entropy(focus).mean()}
            if front is not None:
                known = front.any(dim=-1)
                mass = ((focus * front).sum(dim=-1) * known).sum() / known.sum().clamp(min=1)
                told["train/foreground_mass"] = mass
        if model.training:
            self._advance(model, given)
        told["train/classifier_calls"] = losses.new_tensor(model.calls / len(losses))
        return losses.mean(), told

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Rows of `given`; the focus on the foreground is a mean over rows where that is known."""
        weights, front = {"loss": float(self.row_count(batch))}, self.foreground(batch)
        if front is not None:
            weights["train/foreground_mass"] = float(front.any(dim=-1).sum())
        return weights

    def row_count(self, batch: Batch) -> int:
        """Rows of `given`: one per example."""
        return len(batch["y"])

    def news(self) -> list[tuple[str, str]]:
        """A switch, where there was one."""
        told, self._news = self._news, []
        return told

    def facts(self) -> dict[str, Any]:
        """What a view needs to know: the paradigm, and why it was chosen."""
        return {
            "focus/paradigm": repr(self.choice.paradigm).removesuffix("()"), "focus/reason": self.choice.reason,
            "focus/estimator": repr(self.choice.estimator).removesuffix("()"), "focus/samples": self.choice.samples,
        }  # fmt: skip

    def segments(
        self, model: Any, x: Tensor, y: Tensor, mask: Tensor | None = None, members: Tensor | None = None
    ) -> Segments:
        """Scored, and read as the choice says."""
        choice = self.choice
        return Segments(
            model, x, y, mask, estimator=choice.estimator, samples=choice.samples, background=choice.background,
            members=members,
        )  # fmt: skip

    def evaluate(self, model: Any) -> dict[str, float]:
        """All measures on the validation examples, in their order."""
        found = measures.scores(self.judged(model, "valid"), self.threshold)
        return {f"valid/{name}": value for name, value in found.items()}

    def judged(self, model: Any, split: str) -> measures.Judged:
        """What the model makes of every example of a split."""
        examples = self.data.splits[split]
        device = next(model.parameters()).device
        parts, size = [], max(1, ROWS // self.rows())
        for start in range(0, len(examples), size):
            taken = examples.take(slice(start, start + size))
            parts.append(self._judged(model, {name: one.to(device) for name, one in taken.items()}))
        whole: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        mass, found = whole.pop("mass", None), whole.pop("found", None)
        return measures.Judged(**whole, mass=mass, found=found)

    def _judged(self, model: Any, batch: Batch) -> dict[str, np.ndarray]:
        given, paradigm, front = self.given(model, batch), self.now(model), self.foreground(batch)
        focus, log_p = paradigm.focus(given.scores), paradigm.predict(given)
        best = focus.argmax(dim=-1, keepdim=True)
        alone = given.logits(best).squeeze(1)
        found = {
            "label": given.y, "predicted": log_p.argmax(dim=-1), "likelihood": given.of_label(log_p).exp(),
            "confidence": log_p.amax(dim=-1).exp(), "by_focus": alone.argmax(dim=-1), "largest": focus.amax(dim=-1),
            "entropy": entropy(focus),
        }  # fmt: skip
        if front is not None:
            mass = (focus * front).sum(dim=-1).masked_fill(~front.any(dim=-1), float("nan"))
            found |= {"mass": mass, "found": front.gather(-1, best).squeeze(-1)}
        return {name: one.cpu().numpy() for name, one in found.items()}

    def _advance(self, model: Any, given: Segments) -> None:
        """One more batch is learned; a hybrid looks whether it is time."""
        model.history[DONE] += 1
        hybrid = self.choice.paradigm
        if isinstance(hybrid, Hybrid) and not model.history[STAGE]:
            per_step = self.experiment.training.gradient_accumulation_steps
            why = switch.checked(hybrid, given, self.steps, per_step)
            if why is not None:
                self._news.append(("switch", why))


def entropy(focus: Tensor) -> Tensor:
    """Of each row, in nats."""
    return -torch.special.xlogy(focus, focus).sum(dim=-1)
