"""Focus task: learn which of many segments decides the label, from labels alone.

A focus network scores the m segments of an example (the softmax of the scores is the focus), a
classifier classifies segments, and a paradigm (paradigm.py) combines both into one loss. The
segment that decides the label is the foreground. Training does not use its position; only metrics
do. A mosaic (mosaics.py) is a generated example whose segments are images. A unit is a distinct
segment; examples store indices of units, their members (data.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.diagnostics import SourceText
from neural.core.errors import TaskError
from neural.core.experiment import Experiment, PositiveInt
from neural.core.metadata_fields import NUMBER, TEXT, TEXTS, MetadataField
from neural.data.loading import locate_data, serialize_location
from neural.language.network import Network
from neural.language.summary import format_summary
from neural.tasks._program_task import check_program, load_program
from neural.tasks.focus import array_files, mosaics, token_files
from neural.tasks.focus.base_task import FocusTask, FocusTaskSettings
from neural.tasks.focus.data import SegmentData, SegmentSplit
from neural.tasks.focus.model import FocusModel, load_network, write_default_program
from neural.tasks.focus.predict import (
    SCALE_KEY,
    STEPS_KEY,
    VOCABULARY_KEY,
    describe_focus_input,
    predict_focus,
)
from neural.tasks.focus.recorded_examples import (
    EXAMPLES_KEY,
    RecordedExamples,
    select_examples,
)
from neural.tasks.focus.segment_batch import SegmentBatch
from neural.tasks.focus.training_plan import SegmentGrowth, parse_paradigm
from neural.tasks.task import Predictions, count_positions

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.language.network import Network
    from neural.tasks.task import Batch, TrainedRun

DEFAULT_SHAPES = {"digits": (64,), "cifar10": (32, 32, 3), "cifar100": (32, 32, 3)}
"""Shapes of segments by dataset name, if no network is given."""
DEFAULT_PICTURE_SHAPE = (16, 16, 3)
"""Shape of the segments of all other data, if no network is given."""
MIN_GROWN_SEGMENTS, FIRST_GROWN_SEGMENTS = 100, 16
"""If mosaics have more than MIN_GROWN_SEGMENTS segments, the paradigm `auto` starts the training
with mosaics of FIRST_GROWN_SEGMENTS segments and doubles their number until it is complete."""


class FocusSettings(FocusTaskSettings):
    """Segments, a paradigm, and training settings."""

    task: str = Field("focus", description="Name of the task.")
    data: str = Field(
        "digits",
        description="Labelled images, to draw mosaics from; or a file of segments (`.npz`) or of "
        "tokens (`.jsonl`).",
    )
    segments: int | None = Field(
        None, ge=2, le=1_000_000, description="Number of segments of a mosaic; 10 by default."
    )
    grow: int | None = Field(
        None,
        ge=2,
        description="Number of segments of the first mosaics. It doubles during training and "
        "reaches `segments` after half of the steps.",
    )
    foreground: tuple[str | int, ...] | None = Field(
        None, description="Classes of the images that decide the label; default: the first three."
    )
    examples: PositiveInt = Field(6000, description="Number of training mosaics.")
    valid_examples: PositiveInt = Field(
        500, description="Number of validation mosaics; their images do not occur in training."
    )
    test_examples: PositiveInt = Field(
        3000,
        description="Number of test mosaics; their images occur in no training or validation "
        "mosaic.",
    )
    focus_rate: float = Field(
        1.0,
        gt=0,
        le=1000,
        description="Learning rate of the focus network relative to the classifier's.",
    )
    focus: str | None = Field(
        None,
        min_length=1,
        description="`.neural` file or program of the focus network, which scores a segment.",
    )
    classifier: str | None = Field(
        None,
        min_length=1,
        description="`.neural` file or program of the classifier of a segment.",
    )


class Focus(FocusTask):
    """Find the one of many segments that decides the label, trained on labels alone."""

    Settings: ClassVar[type[Experiment]] = FocusSettings
    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {
        **FocusTask.metadata_fields,
        "focus/paradigm": TEXT,
        STEPS_KEY: NUMBER,
        VOCABULARY_KEY: TEXTS,
        SCALE_KEY: NUMBER,
    }

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        assert isinstance(experiment, FocusSettings)
        location = locate_data(experiment.data, folder)
        if not isinstance(location, str | Path):
            raise TaskError("`data` must be a name, a file or a folder")
        split_sizes = [experiment.examples, experiment.valid_examples, experiment.test_examples]
        foreground = (
            None
            if experiment.foreground is None
            else [str(class_name) for class_name in experiment.foreground]
        )
        shape_network = _shape_network(experiment, location, folder, catalogue)
        self.data: SegmentData = read_segments(
            location,
            shape_network,
            segments=experiment.segments,
            foreground=foreground,
            examples=split_sizes,
            seed=experiment.split_seed,
            training_seed=experiment.training.seed,
        )
        vocabulary_size, shape = len(self.data.vocabulary) or None, self.data.shape
        segment_kwargs: dict[str, Any] = {"shape": shape, "vocabulary": vocabulary_size}
        classes = len(self.data.classes)
        focus_source, self.focus = load_network(
            experiment.focus, "Focus", folder, catalogue, outputs=1, **segment_kwargs
        )
        classifier_source, self.classifier = load_network(
            experiment.classifier,
            "Classifier",
            folder,
            catalogue,
            outputs=classes,
            **segment_kwargs,
        )
        self._grown_split: SegmentSplit | None = None
        self.set_up_training(experiment, classes=classes, segments=self.data.segments)
        paradigm_name = experiment.paradigm.partition("(")[0]
        tracking = experiment.tracking
        if "track_every" not in tracking.model_fields_set:
            # A focus model has no attention layers whose maps could be captured.
            tracking = tracking.model_copy(update={"track_every": 0})
        resolved_settings = {
            "data": str(serialize_location(location)),
            "focus": focus_source.text,
            "classifier": classifier_source.text,
            "tracking": tracking,
            "name": experiment.name or f"focus-{paradigm_name}",
        }
        super().__init__(experiment.model_copy(update=resolved_settings), folder, catalogue)

    def build(self) -> FocusModel:
        """A new focus model."""
        return _create_model(self.experiment, self.focus, self.classifier)

    def resolve_growth(self, experiment: FocusTaskSettings, segments: int) -> SegmentGrowth | None:
        """Growth as set by `grow`; by default only `auto` grows mosaics, if they are large."""
        assert isinstance(experiment, FocusSettings)
        grow, is_mosaic = experiment.grow, self.data.splits["train"].is_mosaic
        if grow is None:
            return (
                SegmentGrowth(FIRST_GROWN_SEGMENTS, segments)
                if experiment.paradigm == "auto" and is_mosaic and segments > MIN_GROWN_SEGMENTS
                else None
            )
        if not is_mosaic:
            raise TaskError(
                f"{self.data.data_name}: `grow` is for mosaics; these examples cannot grow"
            )
        if grow > segments:
            raise TaskError(f"`grow` is {grow}, but must be at most `segments`, {segments}")
        return SegmentGrowth(grow, segments)

    def batch(self, index: int) -> Batch:
        """Training batch `index`, of smaller mosaics while they are growing."""
        growth = self.plan.growth
        step = index // self.experiment.training.batches_per_step
        segments = self.data.segments if growth is None else growth.segments_at(step / self.steps)
        return self._train_split(segments).take(self.sampler[index])

    def _train_split(self, segments: int) -> SegmentSplit:
        """Training examples with this number of segments; the last result is cached."""
        if self._grown_split is None or self._grown_split.members.shape[1] != segments:
            train = self.data.splits["train"]
            self._grown_split = train if segments == self.data.segments else train.shrink(segments)
        return self._grown_split

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """Focus weights of the segments."""
        return self.current_paradigm(model).focus_weights(self.score_batch(model, batch).scores)

    def model_summary(self) -> str:
        """Tables of the focus network and the classifier."""
        return f"{format_summary(self.focus)}\n\n{format_summary(self.classifier)}"

    def metadata(self) -> dict[str, Any]:
        """Classes, number of segments, recorded examples, paradigm; what predictions need."""
        return {
            STEPS_KEY: self.steps,
            VOCABULARY_KEY: list(self.data.vocabulary),
            SCALE_KEY: self.data.splits["train"].scale,
            "focus/classes": list(self.data.classes),
            "focus/segments": self.data.segments,
            EXAMPLES_KEY: self.recorded_examples.to_metadata(),
            **super().metadata(),
        }

    @cached_property
    def recorded_examples(self) -> RecordedExamples:
        """Validation examples whose focus is recorded, for the pages of the run."""
        return select_examples(self.data)

    def evaluate(self, model: Any) -> dict[str, Any]:
        """All metrics on the validation examples; focus and predictions of the recorded ones."""
        return {**super().evaluate(model), **self.recorded_examples.record(self, model)}

    def score_batch(self, model: Any, batch: Batch) -> SegmentBatch:
        """A batch with focus scores; each unit (a distinct image or word) is computed once."""
        units, members = self.data.splits["train"].unique_units(batch["members"])
        return self.create_segment_batch(model, units, batch["y"], batch.get("mask"), members)

    def count_positions(self, batch: Batch) -> int:
        """Those of the distinct segments: the batch has only their numbers."""
        return count_positions([self.data.splits["train"].unique_units(batch["members"])[0]])

    def foreground(self, batch: Batch) -> Tensor | None:
        """Foreground mask of the data, if known."""
        return batch.get("foreground")

    @classmethod
    def predict(cls, run: TrainedRun, source: Any) -> Predictions:
        """Classes and focus for new segments or texts: the path of a file, arrays, or tokens."""
        return Predictions([predict_focus(run, source)])

    @classmethod
    def describe_input(cls, run: TrainedRun) -> str:
        """A file of segments, or of tokens."""
        return describe_focus_input(run)

    @classmethod
    def build_from_settings(cls, experiment: Experiment, catalogue: Catalogue) -> FocusModel:
        """A model from the two programs in a run's settings."""
        assert isinstance(experiment, FocusSettings)
        focus, classifier = (
            check_program(SourceText(f"the {source_name}", text or ""), catalogue, None)
            for source_name, text in (
                ("focus", experiment.focus),
                ("classifier", experiment.classifier),
            )
        )
        return _create_model(experiment, focus, classifier)

    @classmethod
    def example(cls, folder: Path, catalogue: Catalogue) -> Focus:
        """Generated task: five short vectors, one of which has a large entry at the label."""
        random = np.random.default_rng(0)
        # 60 examples of 5 segments of width 4; 3 classes
        labels, position = random.integers(3, size=60), random.integers(5, size=60)
        segments = 0.1 * random.normal(size=(60, 5, 4)).astype(np.float32)
        segments[np.arange(60), position, labels] += 1.0
        np.savez(folder / "tiny.npz", segments=segments, labels=labels, foreground=position)
        training = cls.Settings.model_fields["training"].get_default(call_default_factory=True)
        training = training.model_copy(update={"steps": 7, "batch_size": 4})
        return cls(FocusSettings(data="tiny.npz", training=training), folder, catalogue)


def _create_model(experiment: Experiment, focus: Network, classifier: Network) -> FocusModel:
    assert isinstance(experiment, FocusSettings)
    needs_inference = parse_paradigm(experiment.paradigm).uses_inference_network
    return FocusModel(
        focus,
        classifier,
        focus_lr_factor=experiment.focus_rate,
        with_inference_network=needs_inference,
    )


def _shape_network(
    experiment: FocusSettings, location: Any, folder: Path, catalogue: Catalogue
) -> Network:
    """A network whose input shape is that of the segments.

    The classifier or focus network of the settings if given, else a default network.
    """
    program = experiment.classifier or experiment.focus
    if program is not None:
        return check_program(load_program(program, folder), catalogue, None)
    shape = (
        DEFAULT_SHAPES.get(location, DEFAULT_PICTURE_SHAPE)
        if isinstance(location, str)
        else DEFAULT_PICTURE_SHAPE
    )
    return check_program(
        SourceText("the program", write_default_program("Focus", shape, 1, None)), catalogue, None
    )


def read_segments(
    location: str | Path,
    network: Network | None,
    *,
    segments: int | None,
    foreground: Sequence[str] | None,
    examples: Sequence[int],
    seed: int,
    training_seed: int | None = None,
) -> SegmentData:
    """Read the examples of a dataset name, file or folder. Raises TaskError if they are unusable.

    Only mosaics use `network` (its input shape is that of the images), `foreground` (names of the
    foreground classes) and `examples` (numbers of training, validation and test examples). `seed`
    decides the split; `training_seed`, if given, draws the training mosaics.
    """
    if isinstance(location, Path) and location.suffix.lower() in (".jsonl", ".json"):
        data = token_files.read_token_file(location, seed=seed)
    elif (
        isinstance(location, Path)
        and location.suffix.lower() == ".npz"
        and array_files.holds_segments(location)
    ):
        data = array_files.read_array_file(location, seed=seed)
    else:
        return mosaics.read_mosaics(
            location,
            network,
            segments=segments or mosaics.DEFAULT_SEGMENTS,
            foreground=foreground,
            counts=examples,
            seed=seed,
            training_seed=training_seed,
        )
    if foreground is not None:
        raise TaskError(
            f"{data.data_name}: `foreground` is for mosaics; this file has its own foreground"
        )
    if segments is not None and segments != data.segments:
        raise TaskError(
            f"{data.data_name}: `segments` is {segments}, but its examples have {data.segments}"
        )
    return data
