"""What an experiment may say: the parts that all tasks share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from neural.core.diagnostics import Source
from neural.core.fields import LARGEST, Also, Says
from neural.core.mistakes import Contradiction
from neural.core.settings import Settings, read_chosen

Count = Annotated[int, Field(ge=1, le=LARGEST)]
Interval = Annotated[int, Field(ge=0, le=LARGEST)]
"""A count where 0 turns something off."""
Name = Annotated[str, Field(pattern=r"^[\w.-]{1,80}$"), Says("up to 80 letters, digits, `.`, `_` and `-`")]


DEFAULT_EPOCHS = 10


def world_size() -> int:
    """Processes that train together, as torchrun tells each of them; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


class Training(Settings):
    """How to train: how long, with which steps, with which safeguards."""

    steps: Count | None = Field(None, description="Optimizer steps; without it, `epochs` decides.")
    epochs: float | None = Field(None, gt=0, description="Passes over the training data; 10 if `steps` is not given.")
    batch_size: Count = Field(32, description="Examples per batch and process.")
    gradient_accumulation_steps: Count = Field(1, description="Batches added up before one optimizer step.")
    optimizer: str = Field("AdamW", description="As in a program: `AdamW`, or `Muon(learning_rate=0.02)`.")
    learning_rate: Annotated[float | None, Also("lr")] = Field(
        None, gt=0, description="Peak rate, in place of the optimizer's own; a second rate is scaled along."
    )
    weight_decay: float | None = Field(None, ge=0, description="In place of the optimizer's own.")
    scheduler: Literal["constant", "cosine", "linear", "plateau"] | None = Field(
        None, description="How the rate falls over the run, where the optimizer has no schedule of its own."
    )
    warmup_steps: Interval = Field(0, description="Steps of rising from 0 before that.")
    min_learning_rate: float = Field(0.0, ge=0, description="Where cosine, linear and plateau end.")
    plateau_patience: Count = Field(3, description="Validations without improvement before `plateau` halves the rate.")
    clip_norm: Annotated[float | None, Also("clipnorm")] = Field(
        None, gt=0, description="Largest norm of all gradients together."
    )
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="Share of certainty taken from the true class.")
    ema: float = Field(0.0, ge=0, lt=1, description="Memory of the weights' average that validation uses; 0 is off.")
    patience: Annotated[Count | None, Also("early_stopping_patience")] = Field(
        None, description="Validations without improvement before stopping."
    )
    validate_every: Count | None = Field(None, description="Steps between validations; an epoch, but 50 to 250.")
    checkpoint_every: Count | None = Field(None, description="Steps between checkpoints; as validations if not given.")
    keep_checkpoints: Count = Field(2, description="Newest checkpoints that stay, beside the best one.")
    gradient_checkpointing: bool = Field(False, description="Recompute activations instead of keeping them.")
    mixed_precision: bool = Field(False, description="bfloat16 where it is safe.")
    shard: bool = Field(False, description="Split weights and optimizer among processes (FSDP), not copy them.")
    seed: Interval = Field(0, description="Weights to start from, order and dropout follow from it.")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="Where to compute.")

    def verify(self) -> Iterator[Contradiction]:
        """How long, and which rates."""
        yield from super().verify()
        if self.steps is not None and self.epochs is not None:
            both = "`steps` and `epochs` both say how long to train"
            yield Contradiction(both, "epochs", "steps", help="keep one; null stands for not given")
        if self.steps is not None and self.warmup_steps >= self.steps:
            end = f"the warm-up of {self.warmup_steps} steps does not end within {self.steps}"
            yield Contradiction(end, "warmup_steps", "steps")
        if self.learning_rate is not None and self.min_learning_rate > self.learning_rate:
            yield Contradiction("the smallest rate is above the peak", "min_learning_rate", "learning_rate")

    @property
    def batches_per_step(self) -> int:
        """Batches that make one optimizer step: of all processes, and added up in each."""
        return self.gradient_accumulation_steps * world_size()

    def total_steps(self, epoch: int, batches_per_step: int | None = None) -> int:
        """Optimizer steps of the training, where so many batches go once through the data."""
        if self.steps is not None:
            return self.steps
        batches = (self.epochs or DEFAULT_EPOCHS) * epoch
        return math.ceil(batches / (batches_per_step or self.batches_per_step))


class Tracking(Settings):
    """How the attention is watched while the network learns."""

    track_every: Interval = Field(50, description="Steps between two looks at the attention of the probe; 0 is off.")
    measures: tuple[str, ...] | None = Field(None, description="Which ones; by default all that apply.")
    maps_every: Interval = Field(5, description="Looks between two that keep maps; the last does too; 0 keeps none.")
    probe_size: Count = Field(4, description="Examples in the probe.")
    sinks: tuple[str, ...] = Field((), description="Where scalars go too: tensorboard, mlflow, wandb, trackio.")


class Experiment(Settings):
    """An experiment: a task, how to train, how to watch."""

    task: str = Field(description="What is learned: a name of `neural.tasks`.")
    name: Name | None = Field(None, description="Goes into the run folder's name.")
    training: Training = Field(default_factory=Training, description="How to train.")
    tracking: Tracking = Field(default_factory=Tracking, description="How to watch.")

    set_at_start: ClassVar[frozenset[str]] = frozenset()
    """Keys of a new run alone: later they would have no effect, or move what is held out."""


def read_experiment(
    source: Source | None, changes: Sequence[str] = (), *, choose: Callable[[str], type[Experiment]]
) -> Experiment:
    """An experiment from a YAML file with changes (`training.seed=3`) made to it, or SettingsError.

    `choose` finds the settings of the task that the file names: `lambda name: registry.get(name).Settings`.
    """
    return read_chosen(Experiment, "task", choose, source, changes)
