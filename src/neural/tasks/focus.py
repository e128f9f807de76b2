"""Which of many segments decides the label? A focus scores them, a classifier reads them, a paradigm joins the two.

Only labels are given; the place of the segment that matters is hidden from training and known to the measures alone.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.diagnostics import Source
from neural.language.summary import text_table
from neural.modules.late import torch
from neural.tasks._program import checked, program_source
from neural.tasks.data.find import locate, said
from neural.tasks.data.order import Order
from neural.tasks.experiment import Count, Experiment
from neural.tasks.focusing import measures, switch
from neural.tasks.focusing.choice import Choice, chosen
from neural.tasks.focusing.data import Data
from neural.tasks.focusing.networks import DONE, STAGE, FocusModel, default_program, network_of
from neural.tasks.focusing.paradigm import Moment, Paradigm
from neural.tasks.focusing.paradigms.hybrid import Hybrid
from neural.tasks.focusing.reading import read
from neural.tasks.focusing.segments import Segments
from neural.tasks.task import Task, TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.language.network import Network
    from neural.tasks.task import Batch

EPOCHS = 10
"""Where neither steps nor epochs were said, as for every task."""
ROWS = 1 << 15
"""Segments that a validation reads at once."""
USUAL = {"digits": (64,)}
PICTURES = (16, 16, 3)
"""Shapes of segments where no network says them."""


class FocusSettings(Experiment):
    """Segments, a paradigm, and how to train."""

    task: str = Field("focus", description="What is learned: a name of `neural.tasks`.")
    data: str = Field("digits", description="Images with classes, for mosaics; segments (`.npz`); tokens (`.jsonl`).")
    paradigm: str = Field("lvml", description="How focus and classifier are joined: `soft`, `renyi(tau=0.5)`, `auto` …")
    estimator: str | None = Field(None, description="Which segments are read in training: `exact`, `topk` …")
    samples: Count | None = Field(None, description="How many of them; needed by every estimator but `exact`.")
    segments: int | None = Field(None, ge=2, le=1_000_000, description="m, of a mosaic; 10 if not said.")
    foreground: tuple[str | int, ...] | None = Field(None, description="Classes that decide; the first three.")
    examples: Count = Field(6000, description="Mosaics to train on.")
    valid_examples: Count = Field(500, description="Mosaics to validate with, of other images.")
    test_examples: Count = Field(3000, description="Mosaics to judge by at the end, of still others.")
    focus: str | None = Field(None, min_length=1, description="A `.neural` file that scores a segment, or its text.")
    classifier: str | None = Field(None, min_length=1, description="A `.neural` file that classifies one, or its text.")
    background: float = Field(0.0, ge=0, description="Push of segments out of focus towards no class; 0.1 is usual.")
    threshold: float = Field(0.8, gt=0, lt=1, description="Of SAIF: focus and probability must be above it.")


class Focus(Task):
    """Learn which segment of many decides the label, from labels alone."""

    Settings: ClassVar[type[Experiment]] = FocusSettings

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        assert isinstance(experiment, FocusSettings)
        where, training = locate(experiment.data, folder), experiment.training
        if not isinstance(where, str | Path):
            raise TaskError("`data` must be a name, a file or a folder")
        counts = [experiment.examples, experiment.valid_examples, experiment.test_examples]
        front = None if experiment.foreground is None else [str(one) for one in experiment.foreground]
        wanted = _shape(experiment, where, folder, catalogue)
        self.data: Data = read(
            where, wanted, segments=experiment.segments, foreground=front, examples=counts, seed=training.seed
        )
        words, shape = len(self.data.vocabulary) or None, self.data.shape
        fits: dict[str, Any] = {"shape": shape, "vocabulary": words}
        classes = len(self.data.classes)
        focus, self.focus = network_of(experiment.focus, "Focus", folder, catalogue, outputs=1, **fits)
        reader, self.classifier = network_of(
            experiment.classifier, "Classifier", folder, catalogue, outputs=classes, **fits
        )
        self.order = Order(np.arange(len(self.data.splits["train"])), training.batch_size, training.seed)
        self.steps = training.steps or math.ceil((training.epochs or EPOCHS) * self.epoch)
        self.choice: Choice = chosen(
            experiment.paradigm, experiment.estimator, experiment.samples, experiment.background,
            classes=classes, segments=self.data.segments, steps=self.steps,
        )  # fmt: skip
        name = experiment.paradigm.partition("(")[0]
        watching = experiment.tracking
        if "track_every" not in watching.model_fields_set:   # the focus is no attention between positions
            watching = watching.model_copy(update={"track_every": 0})
        resolved = {
            "data": str(said(where)), "focus": focus.text, "classifier": reader.text, "tracking": watching,
            "name": experiment.name or f"focus-{name}",
        }  # fmt: skip
        super().__init__(experiment.model_copy(update=resolved), folder, catalogue)
        self.threshold = experiment.threshold
        self.remarks = (self.choice.reason,) if self.choice.reason else ()
        self._news: list[tuple[str, str]] = []

    def build(self) -> FocusModel:
        """Focus and classifier."""
        return FocusModel(self.focus, self.classifier)

    @property
    def epoch(self) -> int:
        """Batches that go once through the training examples."""
        return self.order.epoch

    def batch(self, index: int) -> Batch:
        """The training batch of that number."""
        return self.data.splits["train"].take(self.order[index])

    def now(self, model: Any) -> Paradigm:
        """The paradigm at this moment of a model's training."""
        done = int(model.history[DONE]) / self.experiment.training.gradient_accumulation_steps
        return self.choice.paradigm.at(Moment(min(1.0, done / self.steps), int(model.history[STAGE])))

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The paradigm's loss; calls of the classifier per example, focus entropy, and the accuracy of its segment."""
        model.calls = 0
        given = self.given(model, batch)
        paradigm = self.now(model)
        losses = paradigm.loss(given)
        with torch.no_grad():
            focus = paradigm.focus(given.scores)
            told = {"train/focus_entropy": _entropy(focus).mean()}
            if "z" in batch:
                told["train/foreground_mass"] = (focus * batch["z"]).sum(dim=-1).mean()
        if model.training:
            self._advance(model, given)
        told["train/classifier_calls"] = losses.new_tensor(model.calls / len(losses))
        return losses.mean(), told

    def news(self) -> list[tuple[str, str]]:
        """A switch, where there was one."""
        told, self._news = self._news, []
        return told

    def evaluate(self, model: Any) -> dict[str, float]:
        """All measures on the validation examples, in their order."""
        found = measures.scores(self.judged(model, "valid"), self.threshold)
        return {f"valid/{name}": value for name, value in found.items()}

    def judged(self, model: Any, split: str) -> measures.Judged:
        """What the model makes of every example of a split."""
        examples = self.data.splits[split]
        device = next(model.parameters()).device
        size = max(1, ROWS // self.data.segments)
        parts = []
        for start in range(0, len(examples), size):
            batch = {name: one.to(device) for name, one in examples.take(slice(start, start + size)).items()}
            parts.append(self._judged(model, batch))
        whole: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        mass, found = whole.pop("mass", None), whole.pop("found", None)
        return measures.Judged(**whole, mass=mass, found=found)

    def probe(self) -> Batch:
        """The first validation examples."""
        return self.data.splits["valid"].take(slice(0, self.experiment.tracking.probe_size))

    def look(self, model: Any, batch: Batch) -> Tensor:
        """The focus on each segment."""
        return self.now(model).focus(self.given(model, batch).scores)

    def layout(self) -> str:
        """The focus, then the classifier."""
        return f"{text_table(self.focus)}\n\n{text_table(self.classifier)}"

    def facts(self) -> dict[str, Any]:
        """What a view needs to know: classes, m, and why a paradigm was chosen."""
        return {
            "focus/classes": list(self.data.classes), "focus/segments": self.data.segments,
            "focus/paradigm": repr(self.choice.paradigm).removesuffix("()"), "focus/reason": self.choice.reason,
            "focus/estimator": repr(self.choice.estimator).removesuffix("()"), "focus/samples": self.choice.samples,
        }  # fmt: skip

    def given(self, model: Any, batch: Batch) -> Segments:
        """A batch with the scores of the focus."""
        choice = self.choice
        return Segments(
            model, batch["x"], batch["y"], batch.get("mask"), estimator=choice.estimator, samples=choice.samples,
            background=choice.background,
        )  # fmt: skip

    def _advance(self, model: FocusModel, given: Segments) -> None:
        """One more batch is learned; a hybrid looks whether it is time."""
        model.history[DONE] += 1
        hybrid = self.choice.paradigm
        if isinstance(hybrid, Hybrid) and not model.history[STAGE]:
            per_step = self.experiment.training.gradient_accumulation_steps
            why = switch.checked(hybrid, given, self.steps, per_step)
            if why is not None:
                self._news.append(("switch", why))

    def _judged(self, model: FocusModel, batch: Batch) -> dict[str, np.ndarray]:
        given, y, paradigm = self.given(model, batch), batch["y"], self.now(model)
        focus, log_p = paradigm.focus(given.scores), paradigm.predict(given)
        best = focus.argmax(dim=-1, keepdim=True)
        alone = given.logits(best).squeeze(1)
        found = {
            "label": y, "predicted": log_p.argmax(dim=-1), "likelihood": given.of_label(log_p).exp(),
            "confidence": log_p.amax(dim=-1).exp(), "by_focus": alone.argmax(dim=-1), "largest": focus.amax(dim=-1),
            "entropy": _entropy(focus),
        }  # fmt: skip
        if "z" in batch:
            found |= {"mass": (focus * batch["z"]).sum(dim=-1), "found": batch["z"].gather(-1, best).squeeze(-1)}
        return {name: one.cpu().numpy() for name, one in found.items()}

    @classmethod
    def without_data(cls, experiment: Experiment, catalogue: Catalogue) -> FocusModel:
        """Both programs are in the settings of a run."""
        assert isinstance(experiment, FocusSettings)
        focus, classifier = (
            checked(Source(f"the {noun}", text or ""), catalogue, None)
            for noun, text in (("focus", experiment.focus), ("classifier", experiment.classifier))
        )
        return FocusModel(focus, classifier)

    @classmethod
    def tiny(cls, folder: Path, catalogue: Catalogue) -> Focus:
        """Which of three directions does the one long vector among five point to?"""
        random = np.random.default_rng(0)
        labels, place = random.integers(3, size=60), random.integers(5, size=60)
        segments = 0.1 * random.normal(size=(60, 5, 4)).astype(np.float32)
        segments[np.arange(60), place, labels] += 1.0
        np.savez(folder / "tiny.npz", segments=segments, labels=labels, foreground=place)
        training = cls.Settings.model_fields["training"].get_default(call_default_factory=True)
        training = training.model_copy(update={"steps": 7, "batch_size": 4})
        return cls(FocusSettings(data="tiny.npz", training=training), folder, catalogue)


def _entropy(focus: Tensor) -> Tensor:
    return -torch.special.xlogy(focus, focus).sum(dim=-1)


def _shape(experiment: FocusSettings, where: Any, folder: Path, catalogue: Catalogue) -> Network:
    """A network that takes what a segment is to be: one of those given, or the usual one."""
    given = experiment.classifier or experiment.focus
    if given is not None:
        return checked(program_source(given, folder), catalogue, None)
    shape = USUAL.get(where, PICTURES) if isinstance(where, str) else PICTURES
    return checked(Source("the program", default_program("Focus", shape, 1, None)), catalogue, None)
