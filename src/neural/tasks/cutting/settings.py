"""What an experiment in segmentation may say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from neural.core.mistakes import Contradiction
from neural.core.settings import Settings
from neural.tasks.cutting.elements import Unit
from neural.tasks.cutting.presets import Preset
from neural.tasks.cutting.reader import Told
from neural.tasks.experiment import Count, Experiment, Interval, Training

Share = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0)]
Learned = Literal["boundaries", "labels"]


class Model(Settings):
    """The network: an LSTM in both directions, attention over what it read, a linear map."""

    hidden_dim: Count = Field(256, description="Width of the LSTM, in each direction.")
    num_layers: Count = Field(2, description="LSTM layers.")
    dropout: Share = Field(0.2, description="Share dropped between LSTM layers and before the last map.")
    input_dropout: Share = Field(0.0, description="Share of the inputs dropped; helps where documents are few.")
    attention_enabled: bool = Field(True, description="False: the LSTM alone.")
    attention_type: str = Field(
        "self", description="`self`, `localized`, `boundary_aware` or any other mechanism, as in a program."
    )
    attention_heads: Count = Field(8, description="How many attentions side by side; must divide `attention_dim`.")
    attention_dropout: Share = Field(0.15, description="Share of the attention weights dropped.")
    attention_dim: Count = Field(256, description="Width inside the attention; projected in and out where it differs.")
    positional_encoding: bool | str = Field(
        False, description="Tell the attention positions: true is sinusoidal; or a name, such as `rotary`."
    )
    window_size: Count = Field(7, description="Of `localized`: elements that each one sees, itself in the middle; odd.")

    def verify(self) -> Iterator[Contradiction]:
        """Heads share the width evenly; where one of both is left out, a preset may still say it."""
        yield from super().verify()
        if self.window_size % 2 == 0:
            even = f"a window has an element in its middle: `window_size` must be odd, got {self.window_size}"
            yield Contradiction(even, "window_size", help=f"write {self.window_size + 1}")
        if {"attention_heads", "attention_dim"} <= self.model_fields_set and (wrong := self.uneven()):
            yield Contradiction(wrong, "attention_heads", "attention_dim")

    def uneven(self) -> str | None:
        """What is wrong with the number of heads, if anything."""
        share, left = divmod(self.attention_dim, self.attention_heads)
        if not left or not self.attention_enabled:
            return None
        return f"heads must share the width evenly: {self.attention_dim} = {self.attention_heads} × {share} + {left}"


class SegmentationTraining(Training):
    """How to train, and what is in the loss."""

    validate_every: Count | None = Field(None, description="Steps between validations; an epoch if not given.")
    class_weights: Literal["balanced"] | tuple[Weight, ...] | None = Field(
        None, description="How much each class counts; `balanced`: all alike, however rare."
    )
    boundary_weight: float = Field(
        1.0, gt=0, description="How many times the two elements beside a true boundary count."
    )
    boundary_lambda: Weight = Field(
        0.2, description="Weight of the loss of the boundary scores inside boundary-aware attention; 0: they get none."
    )
    entropy_lambda: Weight = Field(0.0, description="Penalty on confidence: the weight of the output's entropy.")
    head_diversity_lambda: Weight = Field(0.0, description="Penalty on heads that look at the same places.")


class SegmentationSettings(Experiment):
    """Documents, how an element is described, a network, and how to train; a preset says what is left out."""

    task: str = Field("segmentation", description="What is learned: a name of `neural.tasks`.")
    preset: Preset | None = Field(None, description="Where the values come from that are not said.")
    data: str = Field("handbook", description="A file, a folder, or `handbook`.")
    elements: Unit = Field("sentences", description="What plain text is cut into.")
    told_by: Told = Field("auto", description="What tells the parts of plain text; `auto`: headings, or blank lines.")
    compose: Interval = Field(0, description="Learn so many documents made of pieces of these; 0: these themselves.")
    features: int | str | tuple[str, ...] = Field(
        "articles", description="36, 48 or 60 numbers from self-similarities, `articles`, `songs`, `text`, or names."
    )
    learn: Learned | None = Field(None, description="Labels where the data has them, else boundaries, if not said.")
    model: Model = Field(default_factory=Model, description="The network.")
    training: SegmentationTraining = Field(default_factory=SegmentationTraining, description="How to train.")
    validation_split: Share = Field(0.1, description="Share of documents that judge, where the data has no such part.")
    test_split: Share = Field(0.1, description="Share that training never sees, where the data has no such part.")
    allow_duplicates: bool = Field(
        False, description="Take data that has the same document in two of training, validation and test."
    )
    split_seed: Interval = Field(0, description="Which documents these are, and what is composed, follows from it.")
    longest: Count = Field(1024, description="Elements of a training example; longer documents are learned in pieces.")
    threshold: float | None = Field(
        None, gt=0, lt=1, description="Probability above which a part begins, in validations; "
        "if not said, the one that gives as many parts as there are in training.",
    )  # fmt: skip
    labels: tuple[str, ...] | None = Field(None, description="What the classes are called; as the data has it.")
    fingerprint: str | None = Field(None, description="Of the documents that a run was begun with; others are refused.")

    set_at_start: ClassVar[frozenset[str]] = frozenset({"split_seed"})

    def verify(self) -> Iterator[Contradiction]:
        """What is compared must be there; a preset is looked at when it is filled in."""
        yield from super().verify()
        if self.preset is None and (wrong := self.model.uneven()):
            yield Contradiction(wrong, "model")
        if self.preset is None and (wrong := self.alone()):
            yield Contradiction(wrong, "training", "model")

    def alone(self) -> str | None:
        """What is wrong with heads that are to differ, if anything."""
        several = self.model.attention_enabled and self.model.attention_heads > 1
        differ = self.training.head_diversity_lambda > 0
        return "there are no several heads that could differ" if differ and not several else None
