"""What may stand in `train { … }`."""

from __future__ import annotations

from neural.language.declaration import Declared, choice, count, flag, number, text


class Train(Declared):
    """How to train: how long, on what, with which safeguards."""

    epochs: int | None = count("Passes over the training data.", default=None)
    steps: int | None = count("Optimizer steps; instead of `epochs`.", default=None)
    batch_size: int = count("Examples per step and device.", default=32)
    gradient_accumulation_steps: int = count("Batches added up before one optimizer step.", default=1)
    validation_split: float = number("Share of the data held out.", default=0.1, at_least=0, below=1)
    early_stopping_patience: int | None = count("Validations without improvement before stopping.", default=None)
    clip_norm: float | None = number("Largest norm of all gradients together.", default=None, above=0)
    gradient_checkpointing: bool = flag("Recompute activations instead of keeping them.", default=False)
    mixed_precision: bool = flag("16-bit arithmetic where it is safe.", default=False)
    seed: int = count("Everything random follows from it.", default=0, at_least=0)
    data: str | None = text("A file, a folder, or the name of a data set.", default=None)
    device: str = choice(("auto", "cpu", "cuda", "mps"), "Where to compute.", default="auto", noun="device")
