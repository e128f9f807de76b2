"""Settings of a segmentation experiment (a YAML file), and their presets.

An element is a sentence or line of a document. A boundary is an element where a segment begins. A
preset is a named set of values for the settings that the user leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from neural.core.experiment import Experiment, NonNegativeInt, PositiveInt, TrainingSettings
from neural.core.settings import Settings
from neural.core.settings_errors import SettingsConflictError
from neural.tasks.segmentation.reader import BoundaryMarker, LayoutHandling
from neural.tasks.segmentation.text_splitting import ElementUnit

SegmentationPreset = Literal[
    "document_self",
    "document_localized",
    "document_boundary_aware",
    "document_small",
    "articles",
    "songs",
]
SettingsT = TypeVar("SettingsT", bound=Settings)

# Values of the `document_*` presets, which differ in the attention mechanism and the model size.
_DOCUMENT_TRAINING = {
    "batch_size": 24,
    "learning_rate": 4e-4,
    "scheduler": "cosine",
    "label_smoothing": 0.1,
    "entropy_lambda": 0.08,
    "boundary_lambda": 0.0,
    "patience": 20,
    "epochs": 25.0,
}
# Values of the presets `document_localized` and `document_boundary_aware`.
_MEDIUM_MODEL = {
    "hidden_dim": 128,
    "num_layers": 1,
    "attention_heads": 8,
    "attention_dim": 256,
    "attention_dropout": 0.15,
}
# Values of the presets `articles` and `songs`.
_SMALL_TRAINING = {
    "batch_size": 16,
    "learning_rate": 1e-3,
    "scheduler": "cosine",
    "clip_norm": 1.0,
    "epochs": 10.0,
}

# `features`: a number is a set with that many self-similarity columns, a name is a set of features
# (`FEATURE_SETS` in feature_cache.py).
PRESETS: dict[SegmentationPreset, dict[str, Any]] = {
    "document_self": {
        "features": 60,
        "training": _DOCUMENT_TRAINING,
        "model": {
            "hidden_dim": 256,
            "num_layers": 2,
            "attention_type": "self",
            "attention_heads": 8,
            "attention_dim": 256,
            "attention_dropout": 0.15,
            "positional_encoding": False,
        },
    },
    "document_localized": {
        "features": 48,
        "training": _DOCUMENT_TRAINING,
        "model": {**_MEDIUM_MODEL, "attention_type": "localized", "window_size": 7},
    },
    "document_boundary_aware": {
        "features": 48,
        "training": {**_DOCUMENT_TRAINING, "boundary_lambda": 0.2},
        "model": {**_MEDIUM_MODEL, "attention_type": "boundary_aware"},
    },
    "document_small": {
        "features": 36,
        "training": {**_DOCUMENT_TRAINING, "boundary_lambda": 0.2},
        "model": {
            "hidden_dim": 64,
            "num_layers": 1,
            "attention_type": "boundary_aware",
            "attention_heads": 4,
            "attention_dim": 64,
            "attention_dropout": 0.15,
        },
    },
    "articles": {
        "features": "articles",
        "elements": "sentences",
        "training": _SMALL_TRAINING,
        "model": {
            "hidden_dim": 64,
            "num_layers": 1,
            "dropout": 0.3,
            "attention_type": "localized",
            "window_size": 15,
            "attention_heads": 4,
            "attention_dim": 64,
            "attention_dropout": 0.1,
        },
    },
    "songs": {
        "features": "songs",
        "elements": "lines",
        "training": _SMALL_TRAINING,
        "model": {
            "hidden_dim": 64,
            "num_layers": 1,
            "dropout": 0.3,
            "attention_type": "self",
            "attention_heads": 4,
            "attention_dim": 64,
            "attention_dropout": 0.1,
        },
    },
}


def apply_preset(settings: SettingsT, preset: SegmentationPreset | None) -> SettingsT:
    """Fill in the preset's values where the user set none."""
    return settings if preset is None else fill_missing(settings, PRESETS[preset])


def fill_missing(settings: SettingsT, values: dict[str, Any]) -> SettingsT:
    """Settings with `values` where the user set none; nested sections are filled in likewise."""
    filled: dict[str, Any] = {name: getattr(settings, name) for name in settings.model_fields_set}
    for name, value in values.items():
        section = getattr(settings, name)
        if isinstance(section, Settings) and isinstance(value, dict):
            filled[name] = fill_missing(section, value)
        elif name == "epochs" and filled.get("steps") is not None:
            continue  # the user gave the length of training in steps
        else:
            filled.setdefault(name, value)
    settings_class: type[SettingsT] = type(settings)
    return settings_class.model_validate(filled)


Fraction = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0)]
TargetKind = Literal["boundaries", "labels"]
"""What a model predicts for each element: whether a segment begins there, or its label."""


MAX_ENSEMBLE_SIZE = 100
"""Most models of an ensemble."""


class SegmenterSettings(Settings):
    """The network: bidirectional LSTM, attention, linear classifier."""

    hidden_dim: PositiveInt = Field(256, description="Width of the LSTM, in each direction.")
    num_layers: PositiveInt = Field(2, description="LSTM layers.")
    dropout: Fraction = Field(
        0.2, description="Dropout between LSTM layers and before the classifier."
    )
    input_dropout: Fraction = Field(
        0.0, description="Dropout on the inputs; helps when there are few documents."
    )
    attention_enabled: bool = Field(True, description="False: the LSTM alone.")
    attention_type: str = Field(
        "self",
        description="`self`, `localized`, `boundary_aware` or any other mechanism of a program.",
    )
    attention_heads: PositiveInt = Field(
        8, description="Number of attention heads; must divide `attention_dim`."
    )
    attention_dropout: Fraction = Field(0.15, description="Dropout on the attention weights.")
    attention_dim: PositiveInt = Field(
        256,
        description="Width inside the attention; if it differs from 2 × `hidden_dim`, linear "
        "layers project in and out.",
    )
    positional_encoding: bool | str = Field(
        False,
        description="Positions for the attention: true is sinusoidal; or a name, such as `rotary`.",
    )
    window_size: PositiveInt = Field(
        7,
        description="For `localized`: number of elements that each one attends to, itself "
        "included; odd.",
    )

    def verify(self) -> Iterator[SettingsConflictError]:
        """Yield an error for an even window, and for heads that do not divide the width.

        Heads and width are checked only if the user set both; else a preset may supply them.
        """
        yield from super().verify()
        if self.window_size % 2 == 0:
            message = (
                "a window has an element in its middle: `window_size` must be odd, "
                f"got {self.window_size}"
            )
            yield SettingsConflictError(
                message, "window_size", help=f"write {self.window_size + 1}"
            )
        if {"attention_heads", "attention_dim"} <= self.model_fields_set and (
            error := self.head_width_error()
        ):
            yield SettingsConflictError(error, "attention_heads", "attention_dim")

    def head_width_error(self) -> str | None:
        """Message if `attention_heads` does not divide `attention_dim`, else None."""
        head_width, remainder = divmod(self.attention_dim, self.attention_heads)
        if not remainder or not self.attention_enabled:
            return None
        return (
            "heads must share the width evenly: "
            f"{self.attention_dim} = {self.attention_heads} × {head_width} + {remainder}"
        )


class SegmentationTraining(TrainingSettings):
    """Training, and the terms of the loss."""

    seeds: Annotated[int, Field(ge=1, le=MAX_ENSEMBLE_SIZE)] = Field(
        1,
        description="Number of models, trained with the seeds from `seed` on; more than one are an "
        "ensemble, whose mean predicts.",
    )
    validate_every: PositiveInt | None = Field(
        None, description="Steps between validations; default: one epoch."
    )
    class_weights: Literal["balanced"] | tuple[Weight, ...] | None = Field(
        None, description="Weight of each class in the loss; `balanced`: inverse to frequency."
    )
    boundary_weight: float = Field(
        1.0, gt=0, description="Weight in the loss of the two elements beside a true boundary."
    )
    boundary_lambda: Weight = Field(
        0.2,
        description="Weight of the boundary loss of `boundary_aware` attention; 0: off.",
    )
    entropy_lambda: Weight = Field(
        0.0,
        description="Confidence penalty: weight of the entropy of the predictions, which is "
        "subtracted from the loss.",
    )
    head_diversity_lambda: Weight = Field(
        0.0, description="Weight of the penalty on attention heads with similar weights."
    )


class SegmentationSettings(Experiment):
    """Data, features, network and training; a preset supplies values that are not set."""

    task: str = Field("segmentation", description="The task: a name of `neural.tasks`.")
    preset: SegmentationPreset | None = Field(
        None, description="Named settings that supply values not set here."
    )
    data: str = Field(
        "handbook",
        description="A file or folder of documents, or `handbook`: documents composed of the help "
        "topics of Python.",
    )
    elements: ElementUnit = Field(
        "sentences", description="Elements that plain text is split into: lines or sentences."
    )
    boundary_marker: BoundaryMarker = Field(
        "auto",
        description="What separates the segments of plain text; `auto`: headings, or blank lines.",
    )
    layout: LayoutHandling = Field(
        "remove",
        description="Whether documents with titled parts keep headings and blank lines.",
    )
    compose: NonNegativeInt = Field(
        0,
        description="Number of documents to compose of segments of the documents in `data`; "
        "0: train on `data` itself.",
    )
    features: int | str | tuple[str, ...] = Field(
        "articles",
        description="A set of features (36, 48 or 60 self-similarity columns, `articles`, `songs`, "
        "`text`), or a list of feature names.",
    )
    learn: TargetKind | None = Field(
        None,
        description="What the model predicts: labels or boundaries. Default: labels if the data "
        "has them, else boundaries.",
    )
    model: SegmenterSettings = Field(default_factory=SegmenterSettings, description="The network.")
    training: SegmentationTraining = Field(
        default_factory=SegmentationTraining, description="Training and the loss."
    )
    validation_split: Fraction = Field(
        0.1, description="Share of validation documents, if the data has no validation split."
    )
    test_split: Fraction = Field(
        0.1, description="Share of test documents, if the data has no test split."
    )
    allow_duplicates: bool = Field(
        False,
        description="Accept data with the same document in two of training, validation and test.",
    )
    initial: str | None = Field(
        None,
        description="Weights to start from: `shipped`, or the .json file of a saved segmenter. "
        "Features, elements and model that are not set are those of that segmenter.",
    )
    split_seed: NonNegativeInt = Field(
        0, description="Seed of the split into training, validation and test, and of composing."
    )
    max_elements: PositiveInt = Field(
        1024,
        description="Maximum elements of a training example; longer documents are split.",
    )
    threshold: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Boundary probability above which a segment begins, in validations. Default: "
        "predict as many boundaries per element as the training documents have.",
    )
    labels: tuple[str, ...] | None = Field(
        None, description="Names of the classes; filled in from the data."
    )
    fingerprint: str | None = Field(
        None, description="Hash of the run's documents; other documents are refused on resume."
    )

    # Keys that cannot change when a run resumes: another split would move held-out documents, and
    # a resumed run has weights already.
    new_run_keys: ClassVar[frozenset[str]] = frozenset({"split_seed", "initial"})
    data_keys: ClassVar[frozenset[str]] = frozenset({"fingerprint"})

    def verify(self) -> Iterator[SettingsConflictError]:
        """Yield errors of the attention heads.

        With a preset or initial weights, the values are not complete yet; `fill_settings` in
        task.py checks them.
        """
        yield from super().verify()
        is_complete = self.preset is None and self.initial is None
        if is_complete and (error := self.model.head_width_error()):
            yield SettingsConflictError(error, "model")
        if is_complete and (error := self.head_diversity_error()):
            yield SettingsConflictError(error, "training", "model")

    def head_diversity_error(self) -> str | None:
        """Message if `head_diversity_lambda` is set without several heads, else None."""
        has_heads = self.model.attention_enabled and self.model.attention_heads > 1
        if self.training.head_diversity_lambda > 0 and not has_heads:
            return "head_diversity_lambda needs attention_heads > 1"
        return None
