"""Captioning task: describe pictures word by word, attending to one region per word.

A picture is given as the features of its regions. Training uses captions only; the region that a
word is about is used only in metrics. Every word is one example of a focus model (tasks/focus): its
segments are the regions of the picture, and its class is the word. The focus is the attention over
regions. A paradigm (tasks/focus/paradigm.py) combines focus and word classifier into one loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.errors import TaskError
from neural.core.experiment import Experiment, PositiveInt
from neural.core.files import expand_home
from neural.core.metadata_fields import COUNTS, MetadataField
from neural.core.names import suggest_name
from neural.nn.lazy_torch import torch
from neural.tasks.captions.data import NO_REGION, CaptionData, read_captions
from neural.tasks.captions.model import (
    Captioner,
    GeneratedCaption,
    caption_accuracy,
    generate_captions,
)
from neural.tasks.captions.scenes import create_scenes
from neural.tasks.focus.base_task import FocusTask, FocusTaskSettings
from neural.tasks.focus.paradigm import Paradigm
from neural.tasks.focus.paradigms.hybrid import Hybrid

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.focus.segment_batch import SegmentBatch
    from neural.tasks.task import Batch

SCENES_NAME, DEFAULT_GRID = "scenes", 4
"""The default data: generated scenes (scenes.py) of 4 × 4 regions."""
DEFAULT_FOCUS_RATE = 0.1
"""Learning rate of the attention relative to the rest. With 1, the attention converges to empty
regions, where an untrained classifier has the lowest loss, before the features of other regions are
informative (numbers in docs/captions.md)."""
MAX_VALIDATION_PICTURES = 256
"""Captions are generated for at most this number of validation pictures."""


class CaptionsSettings(FocusTaskSettings):
    """Regions with captions, a paradigm, and training settings."""

    task: str = Field("captions", description="Name of the task.")
    data: str = Field(
        SCENES_NAME, description="`scenes`, or an `.npz` file with `regions` (N, m, d)."
    )
    captions: str | None = Field(
        None,
        description="A `.jsonl` file of captions; by default named like the data file.",
    )
    grid: int | None = Field(
        None, ge=2, le=32, description="Rows and columns of a scene; 4 by default."
    )
    examples: PositiveInt = Field(3000, description="Number of training scenes.")
    valid_examples: PositiveInt = Field(300, description="Number of validation scenes.")
    test_examples: PositiveInt = Field(500, description="Number of test scenes.")
    focus_rate: float = Field(
        DEFAULT_FOCUS_RATE,
        gt=0,
        le=1000,
        description="Learning rate of the attention relative to the rest; keep it near 0.1.",
    )
    units: PositiveInt = Field(64, description="Width of LSTM, region encoder and attention.")
    vocabulary: tuple[str, ...] | None = Field(
        None, description="Words by id; those of the captions by default."
    )
    features: PositiveInt | None = Field(
        None, description="Number of features of a region; taken from the data."
    )

    data_keys: ClassVar[frozenset[str]] = frozenset({"vocabulary", "features"})


class Captions(FocusTask):
    """Describe pictures and locate every word, trained on captions alone."""

    aliases: ClassVar[tuple[str, ...]] = ("captioning", "image_captioning")
    Settings: ClassVar[type[Experiment]] = CaptionsSettings
    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {
        **FocusTask.metadata_fields,
        "captions/word_regions": COUNTS,
    }

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        assert isinstance(experiment, CaptionsSettings)
        resolved_settings: dict[str, Any]
        self.data, resolved_settings = _load_data(experiment, folder)
        self.set_up_training(
            experiment, classes=len(self.data.vocabulary), segments=self.data.segments
        )
        _check_softmax(self.plan.paradigm, experiment.paradigm)
        resolved_settings |= {
            "vocabulary": self.data.vocabulary,
            "features": self.data.features,
            "name": experiment.name or f"captions-{experiment.paradigm.partition('(')[0]}",
        }
        super().__init__(experiment.model_copy(update=resolved_settings), folder, catalogue)
        if experiment.features not in (None, self.data.features):
            raise TaskError(
                f"`features` is {experiment.features}, but regions have {self.data.features} "
                "features"
            )

    def build(self) -> Captioner:
        """A new captioner."""
        model = self.build_from_settings(self.experiment, None)
        assert model is not None
        return model

    def score_batch(self, model: Any, batch: Batch) -> SegmentBatch:
        """Every word as an example: the regions of its picture, each with the LSTM output."""
        regions, word_mask = model.region_encoder(batch["x"]), batch["word_mask"]
        lstm_output = model.encode_words(regions, batch["previous_words"])
        caption_index = word_mask.nonzero(as_tuple=True)[0]
        return self.create_segment_batch(
            model,
            model.build_segments(regions[caption_index], lstm_output[word_mask]),
            batch["y"][word_mask],
        )

    def example_losses(self, model: Any, batch: Batch) -> Tensor:
        """−log P(word) of every word, (B, T), in nats; NaN for padding."""
        word_losses = super().example_losses(model, batch)
        losses = word_losses.new_full(batch["word_mask"].shape, float("nan"))
        return losses.masked_scatter(batch["word_mask"], word_losses)

    def target_classes(self, batch: Batch) -> Tensor:
        """The words; −1 for padding."""
        return batch["y"].masked_fill(~batch["word_mask"], -1)

    def foreground(self, batch: Batch) -> Tensor:
        """Mask of the region that each word is about, (words, m); all False for many words."""
        region = batch["region"][batch["word_mask"]]
        return region.unsqueeze(-1) == torch.arange(self.data.segments, device=region.device)

    def count_rows(self, batch: Batch) -> int:
        """Number of words without padding."""
        return int(batch["word_mask"].sum())

    def segments_per_example(self) -> int:
        """Number of regions × largest number of words, because every word has all regions."""
        return self.data.segments * self.data.splits["valid"].word_ids.shape[1]

    def evaluate(self, model: Any) -> dict[str, float]:
        """All metrics per word, and the share of generated captions that equal a reference.

        Metrics of the focus are over words with a known region; those per class are named by the
        word.
        """
        scores, prefix = super().evaluate(model), "valid/focus_accuracy_class_"
        words = {
            name: self.data.vocabulary[int(name.removeprefix(prefix))]
            for name in scores
            if name.startswith(prefix)
        }
        renamed = {
            f"valid/focus_accuracy_{words[name]}" if name in words else name: value
            for name, value in scores.items()
        }
        pictures = self.list_pictures("valid")[:MAX_VALIDATION_PICTURES]
        captions = self.generate_captions(model, self.data.splits["valid"].regions[pictures])
        return {
            **renamed,
            "valid/caption_accuracy": caption_accuracy(
                captions, pictures, self.data.splits["valid"]
            ),
        }

    def list_pictures(self, split: str) -> list[int]:
        """Indices of the pictures of a split."""
        return sorted(set(self.data.splits[split].picture_ids.tolist()))

    def generate_captions(self, model: Any, regions: np.ndarray) -> list[GeneratedCaption]:
        """Captions generated by the model for pictures with `regions` (N, m, d)."""
        max_words = self.data.splits["train"].word_ids.shape[1]
        return generate_captions(
            model, regions, self.current_paradigm(model), self.create_segment_batch, max_words
        )

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """Mean of the regions weighted by attention, (B, T, units), for each reference word."""
        return model(batch["x"], batch["previous_words"], batch["word_mask"])

    def position_labels(self, batch: Batch) -> list[list[str]]:
        """The words; `·` for padding."""
        rows = zip(batch["y"].tolist(), batch["word_mask"].tolist(), strict=True)
        return [
            [
                self.data.vocabulary[word_id] if is_real else "·"
                for word_id, is_real in zip(*row, strict=True)
            ]
            for row in rows
        ]

    def model_summary(self) -> str:
        """Table of the model's parts with their parameters."""
        part_sizes = {
            name: sum(param.numel() for param in module.parameters())
            for name, module in self.build().named_children()
        }
        width = max(map(len, part_sizes))
        return "\n".join(f"{name:<{width}}  {count:>9,}" for name, count in part_sizes.items())

    def metadata(self) -> dict[str, Any]:
        """Words, number of regions, grid; and of the first probe example, picture and word regions.

        A probe example is one whose attention is captured during training.
        """
        probe = self.probe_batch()
        word_regions = [
            region if region != NO_REGION else None for region in probe["region"][0].tolist()
        ]
        return {
            "focus/classes": list(self.data.vocabulary),
            "focus/segments": self.data.segments,
            "captions/grid": self.data.grid,
            "captions/word_regions": word_regions,
            "captions/picture": self.data.render_picture(probe["x"][0].numpy()),
            **super().metadata(),
        }

    @classmethod
    def build_from_settings(
        cls, experiment: Experiment, catalogue: Catalogue | None
    ) -> Captioner | None:
        """A captioner with the sizes in a run's settings."""
        assert isinstance(experiment, CaptionsSettings)
        if experiment.features is None or experiment.vocabulary is None:
            return None
        words = len(experiment.vocabulary)
        return Captioner(
            experiment.features, words, experiment.units, focus_lr_factor=experiment.focus_rate
        )

    @classmethod
    def example(cls, folder: Path, catalogue: Catalogue) -> Captions:
        """Generated scenes of 2 × 2 cells."""
        training = cls.Settings.model_fields["training"].get_default(call_default_factory=True)
        training = training.model_copy(update={"steps": 7, "batch_size": 4})
        counts = {"examples": 40, "valid_examples": 6, "test_examples": 6}
        return cls(
            CaptionsSettings(grid=2, units=8, training=training, **counts), folder, catalogue
        )


def _load_data(experiment: CaptionsSettings, folder: Path) -> tuple[CaptionData, dict[str, Any]]:
    """The data, and the settings of its location with defaults and absolute paths filled in."""
    counts = (experiment.examples, experiment.valid_examples, experiment.test_examples)
    seed = experiment.split_seed
    if experiment.data == SCENES_NAME:
        if experiment.captions is not None:
            raise TaskError("`captions` is for your own regions; scenes have their captions")
        grid = experiment.grid or DEFAULT_GRID
        return create_scenes(grid, counts, seed, experiment.training.seed), {"grid": grid}
    if experiment.grid is not None:
        raise TaskError(
            f"`grid` is for `data: {SCENES_NAME}`; the regions of {experiment.data} are fixed"
        )
    path = (folder / expand_home(experiment.data)).absolute()
    default_captions = path.with_suffix(".jsonl")
    captions = (
        default_captions
        if experiment.captions is None
        else (folder / expand_home(experiment.captions)).absolute()
    )
    for file, key in ((path, "data"), (captions, "captions")):
        if not file.is_file():
            suggestion = (
                suggest_name(experiment.data, [SCENES_NAME]) or f"`{SCENES_NAME}` are generated"
            )
            hint = (
                f"; {suggestion}"
                if key == "data"
                else "; set the file of captions: `captions: own.jsonl`"
            )
            raise TaskError(f"there is no file {file} for `{key}`{hint}")
    data = read_captions(path, captions, vocabulary=experiment.vocabulary, seed=seed)
    return data, {"data": str(path), "captions": str(captions)}


def _check_softmax(paradigm: Paradigm, paradigm_setting: str) -> None:
    """Raise TaskError unless the focus is a softmax.

    `RegionAttention.forward` computes a softmax, and its weights are recorded as the focus.
    """
    stages = (paradigm.first, paradigm.then) if isinstance(paradigm, Hybrid) else (paradigm,)
    if any(type(stage).focus_weights is not Paradigm.focus_weights for stage in stages):
        raise TaskError(
            f"the captioner uses a softmax focus, but `{paradigm_setting}` has another; "
            "use soft, hard, lvml …"
        )
