"""Captions of a trained run for pictures, with the attention behind every word.

A picture is an array of regions, (regions, features), that the model attends to; `focus` is the
attention weight of each region at each word. The true region of a word is the region that it
describes, if the data says so. `GeneratedCaption.words` are word ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.errors import TaskError
from neural.nn.lazy_torch import torch
from neural.report.caption_attention import CaptionAttention
from neural.runs.run import Run
from neural.tasks.captions.data import NO_REGION, read_regions
from neural.tasks.captions.model import GeneratedCaption
from neural.tasks.captions.task import Captions
from neural.training.load_model import load_best_model
from neural.training.load_task import restore_task


@dataclass(frozen=True)
class Caption:
    """Caption of one picture."""

    picture_index: int
    attention: CaptionAttention
    is_exact_match: bool | None
    """Whether it equals a reference caption word for word; None without references."""

    @property
    def text(self) -> str:
        """The words."""
        return " ".join(self.attention.words)


def generate_captions(
    path: Path, data: Path | None = None, *, count: int | None = None
) -> list[Caption]:
    """Captions by the best weights of a run for its test pictures, or for those of `data`.

    `data` is an .npz file of pictures; `count` limits the number of pictures.
    """
    with Run.open(path) as run:
        task = restore_task(run)
    if not isinstance(task, Captions):
        raise TaskError(f"{path.name} is not a captioner: its task is `{task.experiment.task}`")
    model, split = load_best_model(path, task), task.data.splits["test"]
    pictures = task.list_pictures("test")[:count] if data is None else []
    regions = split.regions[pictures] if data is None else _load_regions(data, task)[:count]
    with torch.no_grad():
        captions = task.generate_captions(model, regions)
    if data is not None:
        return [
            Caption(index, _build_attention(task, regions[index], caption), None)
            for index, caption in enumerate(captions)
        ]
    references = split.references()
    return [
        Caption(
            picture,
            _build_attention(
                task, split.regions[picture], caption, _find_word_regions(task, picture, caption)
            ),
            caption.words in references[picture],
        )
        for picture, caption in zip(pictures, captions, strict=True)
    ]


def write_caption_plot(caption: Caption, folder: Path) -> Path:
    """Draw picture, words and attention as a PNG in an existing folder; returns its path."""
    from neural.report.caption_plots import draw_caption

    words = re.sub(r"\W+", "-", caption.text)[:60].strip("-") or "empty"
    return draw_caption(caption.attention, folder / f"{caption.picture_index:04d}-{words}.png")


def _load_regions(data: Path, task: Captions) -> np.ndarray:
    """Pictures of an .npz file, (pictures, regions, features). TaskError for other sizes."""
    regions = read_regions(data, min_pictures=1)
    if regions.shape[1:] != (task.data.segments, task.data.features):  # segments are regions
        raise TaskError(
            f"{data.name}: a picture is {regions.shape[1]} regions of {regions.shape[2]} numbers, "
            f"but the run was trained on {task.data.segments} of {task.data.features}"
        )
    return regions


def _find_word_regions(task: Captions, picture: int, caption: GeneratedCaption) -> list[int | None]:
    """Index of the true region of each word, None for a word without one.

    They are known for reference captions only: empty unless `caption` equals one of the picture.
    """
    split = task.data.splits["test"]
    for row in np.flatnonzero(split.picture_ids == picture):
        length = split.lengths[row] - 1  # without the end token
        if tuple(split.word_ids[row, :length].tolist()) == caption.words:
            return [
                None if region == NO_REGION else region
                for region in split.word_regions[row, : len(caption.words)].tolist()
            ]
    return []


def _build_attention(
    task: Captions, regions: np.ndarray, caption: GeneratedCaption, word_regions: Any = ()
) -> CaptionAttention:
    """What a plot of one caption shows; `regions` is the picture, (regions, features)."""
    picture = task.data.render_picture(regions)
    return CaptionAttention(
        words=[task.data.vocabulary[word] for word in caption.words],
        focus=caption.focus,
        grid=task.data.grid,
        image=None if picture is None else np.array(picture, dtype=np.uint8),
        regions=word_regions,
    )
