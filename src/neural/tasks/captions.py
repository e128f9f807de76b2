"""What is in the picture, and where is each word? A captioner looks at regions, one word after the other.

Only captions are given; which region a word is about is hidden from training and known to the measures alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.names import did_you_mean
from neural.modules.late import torch
from neural.tasks.captioning.captioner import Captioner
from neural.tasks.captioning.data import NOWHERE, Captioned
from neural.tasks.captioning.reading import read
from neural.tasks.captioning.scenes import scenes
from neural.tasks.captioning.speaking import Spoken, right, speak
from neural.tasks.experiment import Count, Experiment
from neural.tasks.focusing.learning import FocusExperiment, FocusTask
from neural.tasks.focusing.paradigm import Paradigm
from neural.tasks.focusing.paradigms.hybrid import Hybrid
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.focusing.segments import Segments
    from neural.tasks.task import Batch

SCENES, GRID, RATE = "scenes", 4, 0.1
"""What is usual. A gaze that learns as fast as the rest settles on empty regions, where an untrained reader errs least,
before there is anything to see elsewhere (docs/captions.md has the numbers)."""
JUDGED = 256
"""Validation pictures that are spoken of, at most."""


class CaptionsSettings(FocusExperiment):
    """Regions with captions, a paradigm, and how to train."""

    task: str = Field("captions", description="What is learned: a name of `neural.tasks`.")
    data: str = Field(SCENES, description="`scenes`, or an `.npz` file with `regions` (N, m, d).")
    captions: str | None = Field(None, description="A `.jsonl` file; the one of the data's name if not said.")
    grid: int | None = Field(None, ge=2, le=32, description="Rows and columns of a scene; 4 if not said.")
    examples: Count = Field(3000, description="Scenes to train on.")
    valid_examples: Count = Field(300, description="Other scenes, to validate with.")
    test_examples: Count = Field(500, description="Still others, to judge by at the end.")
    focus_rate: float = Field(
        RATE, gt=0, le=1000, description="The gaze's learning rate over all else's; much above 0.1 it settles too soon."
    )
    units: Count = Field(64, description="Width of memory, sight and gaze.")
    vocabulary: tuple[str, ...] | None = Field(None, description="Words by id; found in the captions if not given.")
    features: Count | None = Field(None, description="d, of a region; found in the data.")


class Captions(FocusTask):
    """Learn to say what a picture shows, and where to look for every word, from captions alone."""

    Settings: ClassVar[type[Experiment]] = CaptionsSettings

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        assert isinstance(experiment, CaptionsSettings)
        resolved: dict[str, Any]
        self.data, resolved = _read(experiment, folder)
        self.decide(experiment, classes=len(self.data.vocabulary), segments=self.data.segments)
        _check_softmax(self.choice.paradigm, experiment.paradigm)
        resolved |= {
            "vocabulary": self.data.vocabulary, "features": self.data.features,
            "name": experiment.name or f"captions-{experiment.paradigm.partition('(')[0]}",
        }  # fmt: skip
        super().__init__(experiment.model_copy(update=resolved), folder, catalogue)
        if experiment.features not in (None, self.data.features):
            raise TaskError(f"`features` is {experiment.features}, but regions have {self.data.features} numbers")

    def build(self) -> Captioner:
        """The captioner."""
        found = self.without_data(self.experiment, None)
        assert found is not None
        return found

    def given(self, model: Any, batch: Batch) -> Segments:
        """Every word as an example: its regions beside the memory of what was said."""
        sight, real = model.sight(batch["x"]), batch["real"]
        memory = model.remembered(sight, batch["before"])
        scene = real.nonzero(as_tuple=True)[0]
        return self.segments(model, model.segments(sight[scene], memory[real]), batch["y"][real])

    def foreground(self, batch: Batch) -> Tensor:
        """The region that each word is about; none of many words."""
        place = batch["place"][batch["real"]]
        return place.unsqueeze(-1) == torch.arange(self.data.segments, device=place.device)

    def row_count(self, batch: Batch) -> int:
        """Every word is one, padding is none."""
        return int(batch["real"].sum())

    def rows(self) -> int:
        """Every word has its regions."""
        return self.data.segments * self.data.splits["valid"].said.shape[1]

    def evaluate(self, model: Any) -> dict[str, float]:
        """All measures by word, those of the focus over words that are about a region; and captions as a whole."""
        found, start = super().evaluate(model), "valid/focus_accuracy_class_"
        words = {name: self.data.vocabulary[int(name.removeprefix(start))] for name in found if name.startswith(start)}
        named = {f"valid/focus_accuracy_{words[name]}" if name in words else name: one for name, one in found.items()}
        pictures = self.pictures("valid")[:JUDGED]
        spoken = self.spoken(model, self.data.splits["valid"].regions[pictures])
        return {**named, "valid/captions_right": right(spoken, pictures, self.data.splits["valid"])}

    def pictures(self, split: str) -> list[int]:
        """The numbers of a split's pictures."""
        return sorted(set(self.data.splits[split].picture.tolist()))

    def spoken(self, model: Any, regions: np.ndarray) -> list[Spoken]:
        """What the model says about pictures."""
        longest = self.data.splits["train"].said.shape[1]
        return speak(model, regions, self.now(model), self.segments, longest)

    def look(self, model: Any, batch: Batch) -> Tensor:
        """The gaze at every word of the captions that were given."""
        return model(batch["x"], batch["before"], batch["real"])

    def labels(self, batch: Batch) -> list[list[str]]:
        """The words, `·` behind the end."""
        rows = zip(batch["y"].tolist(), batch["real"].tolist(), strict=True)
        return [[self.data.vocabulary[one] if real else "·" for one, real in zip(*row, strict=True)] for row in rows]

    def layout(self) -> str:
        """Part by part."""
        parts = {name: sum(one.numel() for one in part.parameters()) for name, part in self.build().named_children()}
        width = max(map(len, parts))
        return "\n".join(f"{name:<{width}}  {count:>9,}" for name, count in parts.items())

    def facts(self) -> dict[str, Any]:
        """What a view needs to know: words, m, the grid, and the first probe's picture and places."""
        probe = self.probe()
        place = [one if one != NOWHERE else None for one in probe["place"][0].tolist()]
        return {
            "focus/classes": list(self.data.vocabulary), "focus/segments": self.data.segments,
            "captions/grid": self.data.grid, "captions/places": place,
            "captions/picture": self.data.picture(probe["x"][0].numpy()), **super().facts(),
        }  # fmt: skip

    @classmethod
    def without_data(cls, experiment: Experiment, catalogue: Catalogue | None) -> Captioner | None:
        """Its sizes are in the settings of a run."""
        assert isinstance(experiment, CaptionsSettings)
        if experiment.features is None or experiment.vocabulary is None:
            return None
        words = len(experiment.vocabulary)
        return Captioner(experiment.features, words, experiment.units, rate=experiment.focus_rate)

    @classmethod
    def tiny(cls, folder: Path, catalogue: Catalogue) -> Captions:
        """Scenes of four cells."""
        training = cls.Settings.model_fields["training"].get_default(call_default_factory=True)
        training = training.model_copy(update={"steps": 7, "batch_size": 4})
        few = {"examples": 40, "valid_examples": 6, "test_examples": 6}
        return cls(CaptionsSettings(grid=2, units=8, training=training, **few), folder, catalogue)


def _read(experiment: CaptionsSettings, folder: Path) -> tuple[Captioned, dict[str, Any]]:
    """The data, and how settings say where it is."""
    counts = (experiment.examples, experiment.valid_examples, experiment.test_examples)
    seed = experiment.split_seed
    if experiment.data == SCENES:
        if experiment.captions is not None:
            raise TaskError("`captions` is for regions of your own; scenes bring theirs")
        grid = experiment.grid or GRID
        return scenes(grid, counts, seed, experiment.training.seed), {"grid": grid}
    if experiment.grid is not None:
        raise TaskError(f"`grid` is for `data: {SCENES}`; the regions of {experiment.data} are what they are")
    path = (folder / Path(experiment.data).expanduser()).absolute()
    beside = path.with_suffix(".jsonl")
    captions = beside if experiment.captions is None else (folder / Path(experiment.captions).expanduser()).absolute()
    for one, key in ((path, "data"), (captions, "captions")):
        if not one.is_file():
            way = did_you_mean(experiment.data, [SCENES]) or f"`{SCENES}` are drawn here"
            more = f"; {way}" if key == "data" else "; name the file of captions: `captions: own.jsonl`"
            raise TaskError(f"there is no file {one} for `{key}`{more}")
    found = read(path, captions, vocabulary=experiment.vocabulary, seed=seed)
    return found, {"data": str(path), "captions": str(captions)}


def _check_softmax(paradigm: Paradigm, said: str) -> None:
    """The gaze is a softmax, which is what is watched and drawn."""
    stages = (paradigm.first, paradigm.then) if isinstance(paradigm, Hybrid) else (paradigm,)
    if any(type(one).focus is not Paradigm.focus for one in stages):
        raise TaskError(f"the captioner looks by softmax, but `{said}` has a focus of its own; take soft, hard, lvml …")
