"""Which of many segments decides the label? A focus scores them, a classifier reads them, a paradigm joins the two.

Only labels are given; the place of the segment that matters is hidden from training and known to the measures alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.diagnostics import Source
from neural.language.summary import text_table
from neural.tasks._program import checked, program_source
from neural.tasks.data.find import locate, said
from neural.tasks.experiment import Count, Experiment
from neural.tasks.focusing.choice import paradigm_of
from neural.tasks.focusing.data import Data, Split
from neural.tasks.focusing.growth import Growth
from neural.tasks.focusing.learning import FocusExperiment, FocusTask
from neural.tasks.focusing.networks import FocusModel, default_program, network_of
from neural.tasks.focusing.reading import read
from neural.tasks.focusing.segments import Segments
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.language.network import Network
    from neural.tasks.task import Batch

USUAL = {"digits": (64,), "cifar10": (32, 32, 3), "cifar100": (32, 32, 3)}
PICTURES = (16, 16, 3)
"""Shapes of segments where no network says them."""


MANY, FEW = 100, 16
"""Above so many segments `auto` lets mosaics grow, and where they begin."""


class FocusSettings(FocusExperiment):
    """Segments, a paradigm, and how to train."""

    task: str = Field("focus", description="What is learned: a name of `neural.tasks`.")
    data: str = Field("digits", description="Images with classes, for mosaics; segments (`.npz`); tokens (`.jsonl`).")
    segments: int | None = Field(None, ge=2, le=1_000_000, description="m, of a mosaic; 10 if not said.")
    grow: int | None = Field(None, ge=2, description="Segments of the first mosaics; they double, to m at half-time.")
    foreground: tuple[str | int, ...] | None = Field(None, description="Classes that decide; the first three.")
    examples: Count = Field(6000, description="Mosaics to train on.")
    valid_examples: Count = Field(500, description="Mosaics to validate with, of other images.")
    test_examples: Count = Field(3000, description="Mosaics to judge by at the end, of still others.")
    focus_rate: float = Field(1.0, gt=0, le=1000, description="The focus's learning rate over the classifier's.")
    focus: str | None = Field(None, min_length=1, description="A `.neural` file that scores a segment, or its text.")
    classifier: str | None = Field(None, min_length=1, description="A `.neural` file that classifies one, or its text.")


class Focus(FocusTask):
    """Learn which segment of many decides the label, from labels alone."""

    Settings: ClassVar[type[Experiment]] = FocusSettings

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        assert isinstance(experiment, FocusSettings)
        where = locate(experiment.data, folder)
        if not isinstance(where, str | Path):
            raise TaskError("`data` must be a name, a file or a folder")
        counts = [experiment.examples, experiment.valid_examples, experiment.test_examples]
        front = None if experiment.foreground is None else [str(one) for one in experiment.foreground]
        wanted = _shape(experiment, where, folder, catalogue)
        self.data: Data = read(
            where,
            wanted,
            segments=experiment.segments,
            foreground=front,
            examples=counts,
            seed=experiment.split_seed,
            training_seed=experiment.training.seed,
        )
        words, shape = len(self.data.vocabulary) or None, self.data.shape
        fits: dict[str, Any] = {"shape": shape, "vocabulary": words}
        classes = len(self.data.classes)
        focus, self.focus = network_of(experiment.focus, "Focus", folder, catalogue, outputs=1, **fits)
        reader, self.classifier = network_of(
            experiment.classifier, "Classifier", folder, catalogue, outputs=classes, **fits
        )
        self._smaller: Split | None = None
        self.decide(experiment, classes=classes, segments=self.data.segments)
        name = experiment.paradigm.partition("(")[0]
        watching = experiment.tracking
        if "track_every" not in watching.model_fields_set:   # the focus is no attention between positions
            watching = watching.model_copy(update={"track_every": 0})
        resolved = {
            "data": str(said(where)), "focus": focus.text, "classifier": reader.text, "tracking": watching,
            "name": experiment.name or f"focus-{name}",
        }  # fmt: skip
        super().__init__(experiment.model_copy(update=resolved), folder, catalogue)

    def build(self) -> FocusModel:
        """Focus and classifier."""
        return _model(self.experiment, self.focus, self.classifier)

    def growth(self, experiment: FocusExperiment, segments: int) -> Growth | None:
        """As asked; mosaics of very many segments grow with `auto` unasked."""
        assert isinstance(experiment, FocusSettings)
        grow, made = experiment.grow, self.data.splits["train"].made
        if grow is None:
            return Growth(FEW, segments) if experiment.paradigm == "auto" and made and segments > MANY else None
        if not made:
            raise TaskError(f"{self.data.where}: `grow` is for mosaics; these examples are what they are")
        if grow > segments:
            raise TaskError(f"`grow` is {grow}, but a mosaic has {segments} segments in the end; {segments} at most")
        return Growth(grow, segments)

    def batch(self, index: int) -> Batch:
        """The training batch of that number, of smaller mosaics where they have not grown yet."""
        growth = self.choice.growth
        step = index // self.experiment.training.batches_per_step
        segments = self.data.segments if growth is None else growth.at(step / self.steps)
        return self._train(segments).take(self.order[index])

    def _train(self, segments: int) -> Split:
        if self._smaller is None or self._smaller.members.shape[1] != segments:
            train = self.data.splits["train"]
            self._smaller = train if segments == self.data.segments else train.smaller(segments)
        return self._smaller

    def look(self, model: Any, batch: Batch) -> Tensor:
        """The focus on each segment."""
        return self.now(model).focus(self.given(model, batch).scores)

    def layout(self) -> str:
        """The focus, then the classifier."""
        return f"{text_table(self.focus)}\n\n{text_table(self.classifier)}"

    def facts(self) -> dict[str, Any]:
        """What a view needs to know: classes, m, and why a paradigm was chosen."""
        return {
            "focus/classes": list(self.data.classes), "focus/segments": self.data.segments, **super().facts(),
        }  # fmt: skip

    def given(self, model: Any, batch: Batch) -> Segments:
        """A batch with the scores of the focus."""
        units, members = self.data.splits["train"].each_once(batch["members"])
        return self.segments(model, units, batch["y"], batch.get("mask"), members)

    def foreground(self, batch: Batch) -> Tensor | None:
        """As the data says."""
        return batch.get("z")

    @classmethod
    def without_data(cls, experiment: Experiment, catalogue: Catalogue) -> FocusModel:
        """Both programs are in the settings of a run."""
        assert isinstance(experiment, FocusSettings)
        focus, classifier = (
            checked(Source(f"the {noun}", text or ""), catalogue, None)
            for noun, text in (("focus", experiment.focus), ("classifier", experiment.classifier))
        )
        return _model(experiment, focus, classifier)

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


def _model(experiment: Experiment, focus: Network, classifier: Network) -> FocusModel:
    assert isinstance(experiment, FocusSettings)
    informed = paradigm_of(experiment.paradigm).informed
    return FocusModel(focus, classifier, rate=experiment.focus_rate, informed=informed)


def _shape(experiment: FocusSettings, where: Any, folder: Path, catalogue: Catalogue) -> Network:
    """A network that takes what a segment is to be: one of those given, or the usual one."""
    given = experiment.classifier or experiment.focus
    if given is not None:
        return checked(program_source(given, folder), catalogue, None)
    shape = USUAL.get(where, PICTURES) if isinstance(where, str) else PICTURES
    return checked(Source("the program", default_program("Focus", shape, 1, None)), catalogue, None)
