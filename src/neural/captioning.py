"""A trained captioner at work: what it says about pictures, and where it looked for every word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neural.experiments import best_model, task_of_run
from neural.modules.late import torch
from neural.tasks.captioning.data import NOWHERE
from neural.tasks.captioning.reading import regions_of
from neural.tasks.captioning.speaking import Spoken
from neural.tasks.captions import Captions
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.views.caption_plots import Looked, draw


@dataclass(frozen=True)
class Caption:
    """One picture."""

    number: int
    """Of the picture."""
    looked: Looked
    right: bool | None
    """Whether it is, word for word, one that was given; None where none was."""

    @property
    def text(self) -> str:
        """The words."""
        return " ".join(self.looked.words)


def captions(path: Path, data: Path | None = None, *, count: int | None = None) -> list[Caption]:
    """What the best weights of a run say about its test pictures, or about those of an `.npz` file."""
    with Run.open(path) as run:
        task = task_of_run(run)
    if not isinstance(task, Captions):
        raise TaskError(f"{path.name} is no captioner: its task is `{task.experiment.task}`")
    model, split = best_model(path, task), task.data.splits["test"]
    pictures = task.pictures("test")[:count] if data is None else []
    regions = split.regions[pictures] if data is None else _own(data, task)[:count]
    with torch.no_grad():
        spoken = task.spoken(model, regions)
    if data is not None:
        return [Caption(number, _looked(task, regions[number], one), None) for number, one in enumerate(spoken)]
    known = split.references()
    return [
        Caption(picture, _looked(task, split.regions[picture], one, _places(task, picture, one)),
                one.words in known[picture])
        for picture, one in zip(pictures, spoken, strict=True)
    ]  # fmt: skip


def drawn(one: Caption, folder: Path) -> Path:
    """Its picture, in a folder that is there."""
    words = re.sub(r"\W+", "-", one.text)[:60].strip("-") or "nothing"
    return draw(one.looked, folder / f"{one.number:04d}-{words}.png")


def _own(data: Path, task: Captions) -> np.ndarray:
    regions = regions_of(data, least=1)
    if regions.shape[1:] != (task.data.segments, task.data.features):
        raise TaskError(
            f"{data.name}: a picture is {regions.shape[1]} regions of {regions.shape[2]} numbers, "
            f"but the run learned from {task.data.segments} of {task.data.features}"
        )
    return regions


def _places(task: Captions, picture: int, one: Spoken) -> list[int | None]:
    """Where the words are, where somebody said the very same and knew it."""
    split = task.data.splits["test"]
    for row in np.flatnonzero(split.picture == picture):
        if tuple(split.said[row, : split.lengths[row] - 1].tolist()) == one.words:
            return [None if place == NOWHERE else place for place in split.places[row, : len(one.words)].tolist()]
    return []


def _looked(task: Captions, regions: np.ndarray, one: Spoken, places: Any = ()) -> Looked:
    picture = task.data.picture(regions)
    return Looked(
        words=[task.data.vocabulary[word] for word in one.words], focus=one.focus, grid=task.data.grid,
        picture=None if picture is None else np.array(picture, dtype=np.uint8), places=places,
    )  # fmt: skip
