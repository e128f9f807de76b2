"""Settings that all tasks share: training, tracking, experiment.

A task is what is learned: an entry of neural/tasks. The probe is a small fixed batch; during
training its attention is captured every few steps, which gives a snapshot (capture/tracker.py).
Measures are numbers per attention head; maps are its matrices of attention weights.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from neural.core.settings import Settings
from neural.core.settings_errors import SettingsConflictError
from neural.core.settings_fields import MAX_COUNT, Aliases, ValueDescription

PositiveInt = Annotated[int, Field(ge=1, le=MAX_COUNT)]
NonNegativeInt = Annotated[int, Field(ge=0, le=MAX_COUNT)]
"""A count where 0 turns something off."""
RunName = Annotated[
    str,
    Field(pattern=r"^[\w.-]{1,80}$"),  # the name is part of a folder name
    ValueDescription("up to 80 letters, digits, `.`, `_` and `-`"),
]


DEFAULT_EPOCHS = 10
"""Length of training if neither `steps` nor `epochs` is set."""


def world_size() -> int:
    """Number of training processes, as torchrun sets it; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", "1"))


class TrainingSettings(Settings):
    """Length of training, optimizer, schedule, regularization, checkpoints."""

    steps: PositiveInt | None = Field(
        None, description="Optimizer steps; if not given, `epochs` sets the length."
    )
    epochs: float | None = Field(
        None, gt=0, description="Passes over the training data; 10 if `steps` is not given."
    )
    batch_size: PositiveInt = Field(32, description="Examples per batch and process.")
    gradient_accumulation_steps: PositiveInt = Field(
        1, description="Batches accumulated per optimizer step."
    )
    optimizer: str = Field(
        "AdamW",
        description="Written as in a `.neural` program: `AdamW`, or `Muon(learning_rate=0.02)`.",
    )
    learning_rate: Annotated[float | None, Aliases("lr")] = Field(
        None,
        gt=0,
        le=1_000_000,
        description="Peak rate, in place of the optimizer's own; "
        "if the optimizer has a second rate, that is scaled by the same factor.",
    )
    weight_decay: float | None = Field(None, ge=0, description="In place of the optimizer's own.")
    scheduler: str | None = Field(
        None,
        description="A schedule by name, as `cosine`, `linear` or "
        "`ExponentialDecay(0.1, 500, 0.9)`, in place of the optimizer's own; `constant`; or `plateau`.",
    )
    warmup_steps: NonNegativeInt = Field(0, description="Steps of linear warm-up from 0.")
    min_learning_rate: float = Field(
        0.0, ge=0, description="Final rate of cosine, linear and plateau."
    )
    plateau_patience: PositiveInt = Field(
        3, description="Validations without improvement before `plateau` halves the rate."
    )
    clip_norm: Annotated[float | None, Aliases("clipnorm")] = Field(
        None, gt=0, description="Largest norm of all gradients together."
    )
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="Probability mass moved from the true class to all classes."
    )
    ema: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Decay of the averaged weights that validation uses; 0 is off.",
    )
    patience: Annotated[PositiveInt | None, Aliases("early_stopping_patience")] = Field(
        None, description="Validations without improvement before stopping."
    )
    validate_every: PositiveInt | None = Field(
        None, description="Steps between validations; by default one epoch, but 50 to 250 steps."
    )
    checkpoint_every: PositiveInt | None = Field(
        None, description="Steps between checkpoints; by default as for validations."
    )
    keep_checkpoints: PositiveInt = Field(
        2, description="Newest checkpoints to keep, besides the best one."
    )
    gradient_checkpointing: bool = Field(
        False, description="Recompute activations instead of storing them."
    )
    mixed_precision: bool = Field(
        False, description="Compute in bfloat16 where that is numerically safe."
    )
    shard: bool = Field(
        False, description="Shard weights and optimizer state among processes (FSDP)."
    )
    seed: NonNegativeInt = Field(0, description="Seed of initial weights, data order and dropout.")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="Where to compute.")

    def verify(self) -> Iterator[SettingsConflictError]:
        """Conflicts between duration, warm-up and learning rates."""
        if self.steps is not None and self.epochs is not None:
            message = "`steps` and `epochs` both say how long to train"
            yield SettingsConflictError(
                message, "epochs", "steps", help="keep one; null stands for not given"
            )
        if self.steps is not None and self.warmup_steps >= self.steps:
            warmup_message = (
                f"the warm-up of {self.warmup_steps} steps does not end within {self.steps}"
            )
            yield SettingsConflictError(warmup_message, "warmup_steps", "steps")
        if self.learning_rate is not None and self.min_learning_rate > self.learning_rate:
            yield SettingsConflictError(
                "the smallest rate is above the peak", "min_learning_rate", "learning_rate"
            )

    @property
    def batches_per_step(self) -> int:
        """Batches per optimizer step, of all processes together."""
        return self.gradient_accumulation_steps * world_size()

    def total_steps(self, batches_per_epoch: int, batches_per_step: int | None = None) -> int:
        """Optimizer steps of the training, given the number of batches in one epoch.

        `batches_per_step` is by default the property of that name.
        """
        if self.steps is not None:
            return self.steps
        batches = (self.epochs or DEFAULT_EPOCHS) * batches_per_epoch
        return math.ceil(batches / (batches_per_step or self.batches_per_step))


class TrackingSettings(Settings):
    """How attention is captured during training."""

    track_every: NonNegativeInt = Field(
        50, description="Steps between attention snapshots of the probe; 0 is off."
    )
    measures: tuple[str, ...] | None = Field(
        None, description="Names of measures; by default all that apply."
    )
    maps_every: NonNegativeInt = Field(
        5, description="Save maps with every so many snapshots, and with the last; 0 saves none."
    )
    probe_size: PositiveInt = Field(4, description="Examples in the probe.")
    sinks: tuple[str, ...] = Field(
        (), description="Additional outputs for scalars: tensorboard, mlflow, wandb, trackio."
    )


class Experiment(Settings):
    """An experiment: a task, how to train, what to capture."""

    task: str = Field(description="What is learned: a name of `neural.tasks`.")
    name: RunName | None = Field(None, description="Goes into the run folder's name.")
    training: TrainingSettings = Field(
        default_factory=TrainingSettings, description="How to train."
    )
    tracking: TrackingSettings = Field(
        default_factory=TrackingSettings, description="What to capture."
    )

    filled_defaults: ClassVar[Mapping[str, Any]] = {}
    """Values that a task fills in for keys whose default is None, such as a share of 0.1."""
    data_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys that a task fills in to recognise its data again; they are no choice of the user."""
    new_run_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys that a resumed run cannot change: no effect, or they would change the held-out data."""
