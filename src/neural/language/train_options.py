"""Keys of the block `train { … }` in a `.neural` program, with types and defaults."""

from __future__ import annotations

from neural.language.declaration import (
    Declaration,
    bool_field,
    choice_field,
    float_field,
    int_field,
    text_field,
)


class TrainOptions(Declaration):
    """Keys of `train { … }`: how long to train, on which data, and how."""

    epochs: int | None = int_field("Passes over the training data.", default=None)
    steps: int | None = int_field("Optimizer steps; instead of `epochs`.", default=None)
    batch_size: int = int_field("Examples per batch, on each device.", default=32)
    gradient_accumulation_steps: int = int_field(
        "Batches accumulated per optimizer step.", default=1
    )
    validation_split: float = float_field(
        "Share of the data held out.", default=0.1, at_least=0, below=1
    )
    early_stopping_patience: int | None = int_field(
        "Validations without improvement before stopping; `training.patience` in an experiment.",
        default=None,
    )
    clip_norm: float | None = float_field(
        "Largest norm of all gradients together.", default=None, above=0
    )
    gradient_checkpointing: bool = bool_field(
        "Recompute activations instead of storing them.", default=False
    )
    mixed_precision: bool = bool_field("16-bit arithmetic where it is safe.", default=False)
    seed: int = int_field("Seed of all random numbers.", default=0, at_least=0)
    data: str | None = text_field("A file, a folder, or the name of a data set.", default=None)
    device: str = choice_field(
        ("auto", "cpu", "cuda", "mps"), "Where to compute.", default="auto", value_name="device"
    )
