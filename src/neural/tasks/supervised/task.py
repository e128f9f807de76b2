"""Supervised learning: any `.neural` program on any data that fits it.

A program describes a network in the language of the project. `model.scores` of a network returns
its outputs before the final activation (logits), called scores here; `model.head` is that
activation. A network with two streams is an encoder-decoder, with a source and a target sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from neural.core.errors import TaskError
from neural.core.experiment import Experiment, NonNegativeInt
from neural.core.metadata_fields import COUNT, TEXT, TEXTS, MetadataField
from neural.data.dataset import Dataset
from neural.data.input_checks import get_pad_id
from neural.data.loading import load_data, locate_data, serialize_location
from neural.data.targets import IGNORE_INDEX, ClassTargets
from neural.nn.lazy_torch import torch
from neural.tasks._program_task import (
    ProgramTask,
    check_program,
    load_program,
    merge_training,
    remove_label_smoothing,
    resolve_loss,
)
from neural.tasks._text_generator import TextGenerator, load_text_generator
from neural.tasks.supervised.predict import predict_rows
from neural.tasks.task import Predictions, TrainedRun

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.task import Batch


class SupervisedSettings(Experiment):
    """A network, its data, and training settings; unset ones come from the program."""

    task: str = Field("supervised", description="What is learned: a name of `neural.tasks`.")
    network: str = Field(min_length=1, description="A `.neural` file, or the program itself.")
    network_name: str | None = Field(
        None, description="Name of the network, if the program has several."
    )
    data: str | dict[str, str] | None = Field(
        None, description="A file, a folder, files by array name, or the name of a dataset."
    )
    validation_split: float | None = Field(
        None, ge=0, lt=1, description="Share of the data held out; 0.1 by default."
    )
    split_seed: NonNegativeInt = Field(
        0, description="Selects the examples held out; independent of `training.seed`."
    )

    new_run_keys: ClassVar[frozenset[str]] = frozenset({"split_seed"})


class Supervised(ProgramTask):
    """Predict the labels of examples: classes, binary labels, or numbers."""

    Settings: ClassVar[type[Experiment]] = SupervisedSettings
    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {
        "data/columns": TEXTS,
        "data/target": TEXT,
        "data/classes": TEXTS,
        "data/duplicate_examples": COUNT,
    }

    def __init__(
        self, experiment: Experiment, folder: Path, catalogue: Catalogue, *, data: Any = None
    ) -> None:
        """`data`: arrays in memory, used instead of the experiment's `data`."""
        assert isinstance(experiment, SupervisedSettings)
        self.source = load_program(experiment.network, folder)
        self.network = check_program(self.source, catalogue, experiment.network_name)
        data_setting = experiment.data if data is None else data
        data_setting = self.network.train.data if data_setting is None else data_setting
        if data_setting is None:
            raise TaskError(
                f'{self.network.name} has no data: write `data: "digits"` in `train {{ … }}` or in '
                "the experiment, or pass arrays to `neural.fit`"
            )
        location = locate_data(data_setting, folder)
        training, validation_split = (
            merge_training(experiment.training, self.network),
            experiment.validation_split,
        )
        validation_split = (
            self.network.train.validation_split if validation_split is None else validation_split
        )
        resolved = {
            "training": training,
            "network": self.source.text,
            "data": serialize_location(location),
            "validation_split": validation_split,
            "name": experiment.name or self.network.name[:80],
        }
        super().__init__(experiment.model_copy(update=resolved), folder, catalogue)
        self.criterion, self.batch_size = (
            resolve_loss(self.network, training.label_smoothing),
            training.batch_size,
        )
        self.validation_loss = remove_label_smoothing(self.criterion)
        examples = load_data(location, self.network)
        self.data = Dataset(
            examples,
            self.network,
            validation_split=validation_split,
            batch_size=self.batch_size,
            seed=training.seed,
            split_seed=experiment.split_seed,
        )
        self.notes = self.data.notes

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches in one pass over the training data."""
        return self.data.sampler.batches_per_epoch

    def batch(self, index: int) -> Batch:
        """Training batch `index`."""
        return self.data.batch(index)

    def loss(self, model: Any, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss over all targets that are not padding, and the metric if cheap to compute."""
        targets = self.data.train.targets
        logits, y = self.scores_and_targets(model, batch)
        loss: Tensor = self.criterion.compute(logits, y)
        if targets.position_shape:  # with one target per position, the metric costs as much as loss
            return loss, {}
        with torch.no_grad():
            metric_value = targets.score_predictions(logits, y, model.head).mean()
        return loss, {f"train/{targets.metric}": metric_value}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Number of predictions in the loss: examples, or positions that are not padding."""
        y, mask = batch["y"], self.prediction_mask(batch)
        if isinstance(self.data.train.targets, ClassTargets):
            is_counted = y != IGNORE_INDEX if mask is None else (y != IGNORE_INDEX) & mask
            return {"loss": float(is_counted.sum())}
        return {"loss": float(len(y) if mask is None else mask.sum())}

    def evaluate(self, model: Any) -> dict[str, float]:
        """Exact mean loss and metric over all validation examples, or their unpadded positions.

        Without label smoothing.
        """
        count = len(self.data.held_out_indices)
        if not count:
            return {}
        targets, device = self.data.valid.targets, next(model.parameters()).device
        loss_sum = metric_sum = 0.0
        loss_count = metric_count = 0
        for start in range(0, count, self.batch_size):
            examples = self.data.validation_batch(start, start + self.batch_size)
            batch = {name: tensor.to(device) for name, tensor in examples.items()}
            logits, y = self.scores_and_targets(model, batch)
            prediction_count = (
                int((y != IGNORE_INDEX).sum())
                if isinstance(targets, ClassTargets)
                else logits[..., 0].numel()
            )
            metric_values = targets.score_predictions(logits, y, model.head)
            loss_sum += self.validation_loss.compute(logits, y).item() * prediction_count
            metric_sum += metric_values.sum().item()
            loss_count += prediction_count
            metric_count += metric_values.numel()
        return {
            "valid/loss": loss_sum / loss_count,
            f"valid/{targets.metric}": metric_sum / metric_count,
        }

    def scores_and_targets(self, model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits and labels in the form that the loss takes, without padding.

        Padding is removed; of class targets, it is marked with IGNORE_INDEX instead.
        """
        targets = self.data.train.targets
        logits, y = self.scores(model, batch), targets.to_loss_target(batch["y"])
        mask = self.prediction_mask(batch)
        if mask is None:
            return logits, y
        if isinstance(targets, ClassTargets):
            return logits, y.masked_fill(~mask, IGNORE_INDEX)
        return logits[mask], y[mask]

    def prediction_mask(self, batch: Batch) -> Tensor | None:
        """True for predictions that are not padding; None if there is no padding.

        Also None if the network does not predict at every position.
        """
        mask = self.position_mask(batch)
        is_per_position = mask is not None and mask.shape == (
            len(batch["y"]),
            *self.data.train.targets.position_shape,
        )
        return mask if is_per_position else None

    def position_mask(self, batch: Batch) -> Tensor | None:
        """True for positions that are not padding, by the mask and the network's `pad_id`.

        None if there is neither.
        """
        pad = get_pad_id(self.network)
        ids_name, mask_name = (
            ("target", "y_mask") if self.network.has_two_streams else ("x", "mask")
        )
        ids_name = "y" if self.data.predicts_target_tokens else ids_name
        if pad is None:
            return batch.get(mask_name)
        is_real = torch.ne(batch[ids_name], pad)
        return is_real & batch[mask_name] if mask_name in batch else is_real

    def scores(self, model: Any, batch: Batch) -> Tensor:
        """Logits of all positions, padding included."""
        return model.scores(*self.model_inputs(batch))

    def model_inputs(self, batch: Batch) -> tuple[Tensor | None, ...]:
        """Arguments of the model for a batch."""
        if self.network.has_two_streams:
            return batch["source"], batch["target"], batch.get("mask"), batch.get("target_mask")
        return batch["x"], batch.get("mask")

    def metadata(self) -> dict[str, Any]:
        """Names of columns and classes, which `neural predict` needs.

        `data/duplicate_examples`: validation examples that have the inputs of a training example.
        """
        examples = self.data.examples
        names = {
            "data/columns": examples.columns,
            "data/target": examples.target,
            "data/classes": examples.classes,
        }
        duplicates = self.data.duplicates
        duplicate_count = (
            {}
            if duplicates is None or not duplicates.held_out
            else {"data/duplicate_examples": duplicates.equal}
        )
        return {key: value for key, value in names.items() if value} | duplicate_count

    def probe_batch(self) -> Batch:
        """The examples whose attention is captured: the first ones of the validation."""
        return self.data.first_examples(self.experiment.tracking.probe_size)

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """One forward pass."""
        return model(*self.model_inputs(batch))

    def token_ids(self, batch: Batch) -> Tensor | None:
        """Token ids; of the source if there are two sequences."""
        return (
            batch["source" if self.network.has_two_streams else "x"]
            if self.network.takes_token_ids
            else None
        )

    def position_labels(self, batch: Batch) -> list[list[str]] | None:
        """Tokens as text if the data names them, else ids."""
        tokens, names = self.token_ids(batch), self.data.examples.tokens
        if tokens is None:
            return None
        return [
            [names[token_id] if token_id < len(names) else str(token_id) for token_id in row]
            for row in tokens.tolist()
        ]

    @classmethod
    def predict(cls, run: TrainedRun, source: str | bytes) -> Predictions:
        """Predict for the rows of a file or a data set."""
        if isinstance(source, bytes):
            raise TaskError("pass the path of an .npz, .npy, .csv or .tsv file, not `-`")
        rows = predict_rows(run, source)
        return Predictions([rows], rows.notes)

    @classmethod
    def load_generator(cls, run: TrainedRun) -> TextGenerator:
        """The text generator of a run whose network predicts token ids."""
        return load_text_generator(run)

    @classmethod
    def example(cls, folder: Path, catalogue: Catalogue) -> Supervised:
        """Generated task: which of three features has the largest mean?"""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(41, 5, 6)).astype(np.float32)
        np.savez(folder / "tiny.npz", x=x, y=x[:, :, :3].mean(axis=1).argmax(axis=1))
        (folder / "tiny.neural").write_text(EXAMPLE_PROGRAM, encoding="utf-8")
        return cls(SupervisedSettings(network="tiny.neural", data="tiny.npz"), folder, catalogue)


EXAMPLE_PROGRAM = """network Tiny {
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
