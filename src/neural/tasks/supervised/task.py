"""Supervised learning: train any `.neural` program on any data that fits it.

A program is the source text of a network in the `.neural` language. `model.logits` returns the
outputs of the network before the final activation, `model.output_activation`. An encoder-decoder
takes two sequences, `source` and `target`; other networks take one input, `x`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field

from neural.core.errors import TaskError
from neural.core.experiment import Experiment, NonNegativeInt
from neural.core.experiment_guess import ExperimentGuess
from neural.core.metadata_fields import (
    COUNT,
    NUMBER,
    NUMBERS_BY_NAME,
    TEXT,
    TEXTS,
    MetadataField,
)
from neural.core.result import Result
from neural.core.settings_errors import SettingsConflictError
from neural.core.settings_fields import ValueDescription
from neural.data.dataset import Dataset
from neural.data.loading import load_data, locate_data, serialize_location
from neural.data.splits import Fold
from neural.data.table_columns import TableSettings
from neural.data.table_preprocessing import PREPROCESSOR
from neural.data.target_scaler import TARGET_SCALER, fit_target_scaler
from neural.data.targets import IGNORE_INDEX, ClassTargets
from neural.language.train_options import TrainOptions
from neural.nn.lazy_torch import functional, torch
from neural.tasks._program_task import (
    ProgramTask,
    check_program,
    load_program,
    merge_training,
    remove_label_smoothing,
    resolve_loss,
)
from neural.tasks._text_generator import TextGenerator, load_text_generator
from neural.tasks.supervised.batch_inputs import find_real_predictions, get_model_inputs
from neural.tasks.supervised.class_weights import resolve_class_weights
from neural.tasks.supervised.data_summary import summarize_data
from neural.tasks.supervised.evaluation import evaluate
from neural.tasks.supervised.guess import guess_supervised
from neural.tasks.supervised.predict import describe_rows, predict_rows
from neural.tasks.task import Predictions, TrainedRun, check_options

if TYPE_CHECKING:
    from torch import Tensor

    from neural.language.catalogue import Catalogue
    from neural.tasks.task import Batch


def _check_fold(text: str) -> str:
    if Fold.parse(text) is None:
        raise ValueError("not a fold")
    return text


FoldText = Annotated[
    str,
    AfterValidator(_check_fold),
    ValueDescription("a fold and the number of folds, such as `2/5`"),
]
TestShare = Annotated[float, Field(gt=0, lt=1)]
ClassWeight = Annotated[float, Field(gt=0)]


class SupervisedSettings(Experiment):
    """A network, its data, and training settings; unset ones come from the program."""

    task: str = Field("supervised", description="Name of the task.")
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

    table: TableSettings = Field(
        default_factory=TableSettings, description="Columns of a table, and how they are prepared."
    )
    standardize_target: bool = Field(
        False,
        description="Compute the loss on (y − mean) / standard deviation; for targets of any scale.",
    )
    stratify: bool = Field(
        False, description="Hold out the same share of every class; for targets that are classes."
    )
    fold: FoldText | None = Field(
        None,
        description="`2/5` holds out the second of five folds, in place of `validation_split`.",
    )
    test: str | dict[str, str] | TestShare | None = Field(
        None,
        description="Test data, used by `neural evaluate` only: a file or a share of the data.",
    )
    class_weights: Literal["none", "balanced"] | dict[str, ClassWeight] = Field(
        "none",
        description="Weights of classes in the training loss: `balanced`, or a number per class.",
    )

    filled_defaults: ClassVar[Mapping[str, Any]] = {
        "validation_split": TrainOptions().validation_split
    }
    # Keys that a resumed run cannot change, because they select or convert its data.
    new_run_keys: ClassVar[frozenset[str]] = frozenset(
        {"split_seed", "table", "standardize_target", "stratify", "fold", "test"}
    )

    def verify(self) -> Iterator[SettingsConflictError]:
        """Yield an error for two keys that hold out validation examples."""
        yield from super().verify()
        if self.fold is not None and self.validation_split is not None:
            yield SettingsConflictError(
                "`fold` and `validation_split` both say what is held out",
                "fold",
                "validation_split",
                help="keep one",
            )


class Supervised(ProgramTask):
    """Predict the labels of examples: classes, binary labels, or numbers."""

    aliases: ClassVar[tuple[str, ...]] = ("classification", "regression", "classifier", "tabular")
    Settings: ClassVar[type[Experiment]] = SupervisedSettings
    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {
        "data/columns": TEXTS,
        "data/target": TEXT,
        "data/classes": TEXTS,
        "data/duplicate_examples": COUNT,
        "data/chance_loss": NUMBER,
        "data/majority_share": NUMBER,
        "data/feature_scales": NUMBERS_BY_NAME,
        "data/preprocessing": PREPROCESSOR,
        "data/target_scaler": TARGET_SCALER,
        "data/class_weights": NUMBERS_BY_NAME,
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
        training = merge_training(experiment.training, self.network)
        fold = None if experiment.fold is None else Fold.parse(experiment.fold)
        validation_split = experiment.validation_split
        if validation_split is None:
            validation_split = self.network.train.validation_split
        test = experiment.test
        test_location = (
            None if test is None or isinstance(test, float) else locate_data(test, folder)
        )
        resolved = {
            "training": training,
            "network": self.source.text,
            "data": serialize_location(location),
            "validation_split": validation_split if fold is None else None,
            "test": test if test_location is None else serialize_location(test_location),
            "name": experiment.name or self.network.name[:80],
        }
        super().__init__(experiment.model_copy(update=resolved), folder, catalogue)
        self.criterion, self.batch_size = (
            resolve_loss(self.network, training.label_smoothing),
            training.batch_size,
        )
        self.validation_loss = remove_label_smoothing(self.criterion)
        examples = load_data(location, self.network, experiment.table)
        test_examples = (
            None
            if test_location is None
            else load_data(test_location, self.network, experiment.table, examples.schema)
        )
        self.data = Dataset(
            examples,
            self.network,
            validation_split=validation_split,
            batch_size=self.batch_size,
            seed=training.seed,
            split_seed=experiment.split_seed,
            fold=fold,
            stratify=experiment.stratify,
            test_split=test if isinstance(test, float) else 0.0,
            test_examples=test_examples,
        )
        self.target_scaler = (
            fit_target_scaler(self.data, self.network, self.prediction_mask)
            if experiment.standardize_target
            else None
        )
        self.class_weights = resolve_class_weights(
            experiment.class_weights, self.data, self.prediction_mask
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
        """Mean loss over all targets that are not padding, and a metric if it is cheap to compute.

        With `class_weights` it is the weighted mean. The metric (`train/accuracy` or another of the
        targets) is left out with one target per position, because it then costs as much as the
        loss.
        """
        targets = self.data.train.targets
        logits, y = self.compute_logits_and_targets(model, batch)
        loss: Tensor = (
            self.criterion.compute(logits, y)
            if self.class_weights is None
            else self.class_weights.compute_loss(self.criterion, targets, logits, y)
        )
        if targets.position_shape:
            return loss, {}
        with torch.no_grad():
            metric_value = self.score_predictions(model, logits, y).mean()
        return loss, {f"train/{targets.metric}": metric_value}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Number of predictions in the loss: examples, or positions that are not padding.

        With `class_weights` the sum of their weights; the metric is a mean over predictions still.
        """
        y, mask, targets = batch["y"], self.prediction_mask(batch), self.data.train.targets
        if isinstance(targets, ClassTargets):
            is_counted = y != IGNORE_INDEX if mask is None else (y != IGNORE_INDEX) & mask
            count = float(is_counted.sum())
        else:
            count = float(len(y) if mask is None else mask.sum())
        if self.class_weights is None:
            return {"loss": count}
        weight = self.class_weights.sum_weights(targets, y, mask)
        return {"loss": weight, f"train/{targets.metric}": count}

    def evaluate(self, model: Any) -> dict[str, float]:
        """Mean loss, without label smoothing, and metric over all validation targets.

        The mean over batches is weighted by their numbers of targets, padding excluded, so it does
        not depend on the batch size.
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
            logits, y = self.compute_logits_and_targets(model, batch)
            prediction_count = (
                int((y != IGNORE_INDEX).sum())
                if isinstance(targets, ClassTargets)
                else logits[..., 0].numel()
            )
            metric_values = self.score_predictions(model, logits, y)
            loss_sum += self.validation_loss.compute(logits, y).item() * prediction_count
            metric_sum += metric_values.sum().item()
            loss_count += prediction_count
            metric_count += metric_values.numel()
        return {
            "valid/loss": loss_sum / loss_count,
            f"valid/{targets.metric}": metric_sum / metric_count,
        }

    def compute_logits_and_targets(self, model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits and labels in the form that the loss takes, without padding.

        Labels that are classes keep their shape: padding is marked with IGNORE_INDEX, which the
        loss ignores. From other labels, padding is removed. With `standardize_target`, values are
        standardised.
        """
        targets = self.data.train.targets
        logits, y = self.compute_logits(model, batch), targets.to_loss_target(batch["y"])
        y = y if self.target_scaler is None else self.target_scaler.transform(y)
        mask = self.prediction_mask(batch)
        if mask is None:
            return logits, y
        if isinstance(targets, ClassTargets):
            return logits, y.masked_fill(~mask, IGNORE_INDEX)
        return logits[mask], y[mask]

    def score_predictions(self, model: Any, logits: Tensor, y: Tensor) -> Tensor:
        """The metric of every prediction; `y` is in the form that the loss takes.

        An absolute error is in the units of the data.
        """
        targets, scaler = self.data.train.targets, self.target_scaler
        if scaler is None:
            return targets.score_predictions(logits, y, model.output_activation)
        return targets.score_predictions(
            logits,
            scaler.inverse_transform(y),
            lambda outputs: scaler.inverse_transform(model.output_activation(outputs)),
        )

    def prediction_mask(self, batch: Batch) -> Tensor | None:
        """True for predictions that are not padding; None if there is no padding.

        Also None if the network does not predict at every position.
        """
        return find_real_predictions(
            self.network,
            batch,
            self.data.train.targets.position_shape,
            predicts_target_tokens=self.data.predicts_target_tokens,
        )

    def compute_logits(self, model: Any, batch: Batch) -> Tensor:
        """Logits of all positions, padding included."""
        return model.logits(*self.model_inputs(batch))

    def model_inputs(self, batch: Batch) -> tuple[Tensor | None, ...]:
        """Arguments of the model for a batch."""
        return get_model_inputs(self.network, batch)

    def metadata(self) -> dict[str, Any]:
        """Names of columns and classes, which `neural predict` needs.

        `data/duplicate_examples`: validation examples that have the inputs of a training example.
        data_summary.py describes the other entries.
        """
        examples = self.data.examples
        names = {
            "data/columns": examples.columns,
            "data/target": examples.target,
            "data/classes": examples.classes,
            "data/preprocessing": self.data.preprocessor and self.data.preprocessor.to_dict(),
            "data/target_scaler": self.target_scaler and self.target_scaler.to_dict(),
            "data/class_weights": self.class_weights and self.class_weights.by_name,
        }
        duplicates = self.data.duplicates
        duplicate_count = (
            {}
            if duplicates is None or not duplicates.held_out
            else {"data/duplicate_examples": duplicates.equal}
        )
        summary = summarize_data(self.data, self.network, self.target_scaler)
        return {key: value for key, value in names.items() if value} | duplicate_count | summary

    def probe_batch(self) -> Batch:
        """The examples whose attention is captured: the first validation examples."""
        return self.data.first_examples(self.experiment.tracking.probe_size)

    @property
    def has_held_out(self) -> bool:
        """Whether some examples are held out."""
        return bool(len(self.data.held_out_indices))

    def held_out_batch(self, count: int) -> Batch:
        """The first validation examples."""
        return self.data.first_examples(count)

    def example_losses(self, model: Any, batch: Batch) -> Tensor:
        """Loss of every example, (B,); of every class label if there is one per position."""
        targets, mask = self.data.train.targets, self.prediction_mask(batch)
        logits = self.compute_logits(model, batch)
        y = targets.to_loss_target(batch["y"])
        y = y if self.target_scaler is None else self.target_scaler.transform(y)
        if isinstance(targets, ClassTargets):
            labels = self.target_classes(batch)
            losses = functional.cross_entropy(
                logits.movedim(-1, 1).float(), labels.clamp(min=0), reduction="none"
            )
            return losses.masked_fill(labels < 0, float("nan"))
        rows = []
        for index in range(len(y)):
            real = slice(None) if mask is None else mask[index]
            rows.append(self.validation_loss.compute(logits[index][real], y[index][real]))
        return torch.stack(rows)

    def target_classes(self, batch: Batch) -> Any:
        """Class labels; −1 for padding and labels that do not count."""
        if not isinstance(self.data.train.targets, ClassTargets):
            return None
        labels, mask = batch["y"], self.prediction_mask(batch)
        labels = labels.masked_fill(labels == IGNORE_INDEX, -1)
        return labels if mask is None else labels.masked_fill(~mask, -1)

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """One forward pass."""
        return model(*self.model_inputs(batch))

    def token_ids(self, batch: Batch) -> Tensor | None:
        """Token ids of the input; those of the source for an encoder-decoder."""
        return (
            batch["source" if self.network.is_encoder_decoder else "x"]
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
    def predict(cls, run: TrainedRun, source: Any) -> Predictions:
        """Predict for the rows of a table, arrays, a data frame, or a data set."""
        rows = predict_rows(run, source)
        return Predictions([rows], rows.notes)

    @classmethod
    def guess(cls, path: Path, overrides: Sequence[str] = ()) -> ExperimentGuess | None:
        """Classes or numbers from a table, or from a folder per class."""
        return guess_supervised(path, overrides)

    @classmethod
    def describe_input(cls, run: TrainedRun) -> str:
        """A table with the columns of the training data, or arrays of the network's input shape."""
        return describe_rows(run)

    @classmethod
    def evaluate_run(cls, run: TrainedRun, **options: Any) -> Result:
        """Scores beside a constant and a linear baseline; see `evaluation.evaluate`."""
        check_options(run, options, ("data", "allow_duplicates"))
        return evaluate(run, **options)

    @classmethod
    def load_generator(cls, run: TrainedRun) -> TextGenerator:
        """The text generator of a run whose network predicts token ids."""
        return load_text_generator(run)

    @classmethod
    def example(cls, folder: Path, catalogue: Catalogue) -> Supervised:
        """Generated task: the class is the one of three features with the largest mean."""
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
