"""Examples with answers: any `.neural` program, on any data that fits it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.modules.late import torch
from neural.tasks._program import (
    ProgramTask,
    checked,
    loss_of,
    own_training,
    program_source,
    unsmoothed,
)
from neural.tasks.data.check import padding
from neural.tasks.data.dataset import Dataset
from neural.tasks.data.find import locate, read, said
from neural.tasks.data.targets import IGNORED, Classes
from neural.tasks.experiment import Experiment, Interval
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.task import Batch


class SupervisedSettings(Experiment):
    """A network, its data, and how to train; what is left out is as the program says."""

    task: str = Field("supervised", description="What is learned: a name of `neural.tasks`.")
    network: str = Field(min_length=1, description="A `.neural` file, or the program itself.")
    network_name: str | None = Field(None, description="Which network of the program, where it has several.")
    data: str | dict[str, str] | None = Field(None, description="A file, a folder, named files, or a data set's name.")
    validation_split: float | None = Field(None, ge=0, lt=1, description="Share of the data held out; 0.1 if not said.")
    split_seed: Interval = Field(
        0, description="Which examples are held out; `training.seed` does not move them."
    )

    set_at_start: ClassVar[frozenset[str]] = frozenset({"split_seed"})


class Supervised(ProgramTask):
    """Learn the answers that examples come with: classes, yes or no, or numbers."""

    Settings: ClassVar[type[Experiment]] = SupervisedSettings

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue, *, data: Any = None) -> None:
        """`data` are arrays in memory, in place of what the experiment names."""
        assert isinstance(experiment, SupervisedSettings)
        self.source = program_source(experiment.network, folder)
        self.network = checked(self.source, catalogue, experiment.network_name)
        wanted = experiment.data if data is None else data
        wanted = self.network.train.data if wanted is None else wanted
        if wanted is None:
            raise TaskError(
                f'{self.network.name} has no data: write `data: "digits"` in `train {{ … }}` or in the experiment, '
                "or give arrays to `neural.fit`"
            )
        where = locate(wanted, folder)
        training, share = own_training(experiment.training, self.network), experiment.validation_split
        share = self.network.train.validation_split if share is None else share
        resolved = {
            "training": training, "network": self.source.text, "data": said(where), "validation_split": share,
            "name": experiment.name or self.network.name[:80],
        }  # fmt: skip
        super().__init__(experiment.model_copy(update=resolved), folder, catalogue)
        self.criterion, self.size = loss_of(self.network, training.label_smoothing), training.batch_size
        self.validation_loss = unsmoothed(self.criterion)
        examples = read(where, self.network)
        self.data = Dataset(
            examples,
            self.network,
            share=share,
            batch_size=self.size,
            seed=training.seed,
            split_seed=experiment.split_seed,
        )
        self.remarks = self.data.remarks

    @property
    def epoch(self) -> int:
        """Batches that go once through the training data."""
        return self.data.order.epoch

    def batch(self, index: int) -> Batch:
        """The training batch of that number."""
        return self.data.batch(index)

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss over what counts; the accuracy or the error, where it is about the whole example."""
        targets = self.data.train.targets
        scores, y = self.judged(model, batch)
        measured: Tensor = self.criterion.measure(scores, y)
        if targets.places:   # one answer per position: as costly to compare as the loss itself
            return measured, {}
        with torch.no_grad():
            right = targets.right(scores, y, model.head).mean()
        return measured, {f"train/{targets.score}": right}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Predictions that the loss is a mean over: examples, or positions that are not padding."""
        y, mask = batch["y"], self.mask(batch)
        if isinstance(self.data.train.targets, Classes):
            counted = y != IGNORED if mask is None else (y != IGNORED) & mask
            return {"loss": float(counted.sum())}
        return {"loss": float(len(y) if mask is None else mask.sum())}

    def evaluate(self, model: Any) -> dict[str, float]:
        """The exact means over all examples held out, or over all their real positions.

        Labels are never smoothed here.
        """
        count = len(self.data.held)
        if not count:
            return {}
        targets, device = self.data.valid.targets, next(model.parameters()).device
        loss = score = 0.0
        predictions = answers = 0
        for start in range(0, count, self.size):
            batch = {name: one.to(device) for name, one in self.data.held_out(start, start + self.size).items()}
            scores, y = self.judged(model, batch)
            weight = int((y != IGNORED).sum()) if isinstance(targets, Classes) else scores[..., 0].numel()
            right = targets.right(scores, y, model.head)
            loss += self.validation_loss.measure(scores, y).item() * weight
            score += right.sum().item()
            predictions, answers = predictions + weight, answers + right.numel()
        return {"valid/loss": loss / predictions, f"valid/{targets.score}": score / answers}

    def judged(self, model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """Scores and labels as the loss takes them, without what is padding."""
        targets = self.data.train.targets
        scores, y = self.scores(model, batch), targets.ready(batch["y"])
        mask = self.mask(batch)
        if mask is None:
            return scores, y
        if isinstance(targets, Classes):
            return scores, y.masked_fill(~mask, IGNORED)
        return scores[mask], y[mask]

    def mask(self, batch: Batch) -> Tensor | None:
        """Which predictions are not padding; None where all count."""
        mask = self.counted(batch)
        fits = mask is not None and mask.shape == (len(batch["y"]), *self.data.train.targets.places)
        return mask if fits else None

    def counted(self, batch: Batch) -> Tensor | None:
        """Which positions are not padding, by the mask and by the network's `pad_id`; None where all count."""
        pad = padding(self.network)
        ids, mask = ("target", "y_mask") if self.network.two_streams else ("x", "mask")
        ids = "y" if self.data.shifted else ids
        if pad is None:
            return batch.get(mask)
        real = torch.ne(batch[ids], pad)
        return real & batch[mask] if mask in batch else real

    def scores(self, model: Any, batch: Batch) -> Tensor:
        """What the loss takes, before padding is left out."""
        return model.scores(*self.inputs(batch))

    def inputs(self, batch: Batch) -> tuple[Tensor | None, ...]:
        """What the model is called with."""
        if self.network.two_streams:
            return batch["source"], batch["target"], batch.get("mask"), batch.get("target_mask")
        return batch["x"], batch.get("mask")

    def facts(self) -> dict[str, Any]:
        """What a prediction needs to know of the training data: the names of columns and classes.

        `data/duplicate_examples` is how many examples held out have the inputs of a training example.
        """
        examples = self.data.examples
        found = {"data/columns": examples.columns, "data/target": examples.target, "data/classes": examples.classes}
        copies = self.data.duplicates
        known = {} if copies is None or not copies.held else {"data/duplicate_examples": copies.equal}
        return {key: value for key, value in found.items() if value} | known

    def probe(self) -> Batch:
        """The first examples held out."""
        return self.data.few(self.experiment.tracking.probe_size)

    def look(self, model: Any, batch: Batch) -> Tensor:
        """One forward pass."""
        return model(*self.inputs(batch))

    def tokens(self, batch: Batch) -> Tensor | None:
        """The ids, of the source where there are two sequences."""
        return batch["source" if self.network.two_streams else "x"] if self.network.ids else None

    def labels(self, batch: Batch) -> list[list[str]] | None:
        """The characters, where the data knows them, or the ids."""
        tokens, names = self.tokens(batch), self.data.examples.tokens
        if tokens is None:
            return None
        return [[names[one] if one < len(names) else str(one) for one in row] for row in tokens.tolist()]

    @classmethod
    def tiny(cls, folder: Path, catalogue: Catalogue) -> Supervised:
        """Which of three features is largest on average?"""
        random = np.random.default_rng(0)
        x = random.normal(size=(41, 5, 6)).astype(np.float32)
        np.savez(folder / "tiny.npz", x=x, y=x[:, :, :3].mean(axis=1).argmax(axis=1))
        (folder / "tiny.neural").write_text(TINY, encoding="utf-8")
        return cls(SupervisedSettings(network="tiny.neural", data="tiny.npz"), folder, catalogue)


TINY = """network Tiny {
  input: (5, 6)
  layers:
    TransformerEncoder(num_heads=2, d_model=6, dff=11, dropout_rate=0.1)
    GlobalAveragePooling1D()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.01)
  train { steps: 7 batch_size: 4 }
}
"""
