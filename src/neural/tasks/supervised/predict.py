"""Predictions of a run of the task `supervised` for arrays, tables and datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.errors import TaskError
from neural.core.escape import shorten
from neural.core.page_section import PageSection
from neural.data.input_checks import check_inputs
from neural.data.table_columns import MAX_LISTED_COLUMNS
from neural.language.network import Network
from neural.nn.lazy_torch import torch
from neural.tasks.supervised.inputs import (
    STANDARD_INPUT,
    load_class_names,
    load_inputs,
    load_target_scaler,
)
from neural.tasks.task import TrainedRun

if TYPE_CHECKING:
    from torch import nn

BATCH_SIZE = 256
"""Examples per forward pass."""
SHOWN_CLASSES = 3
"""Number of classes that the table shows per example, most likely first; the JSON has all."""
MAX_CELL = 60
"""Maximum number of characters in a table cell."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedRows:
    """Predictions for the rows of a file."""

    output_activation: str
    """Kind of outputs. `softmax`: class probabilities; `sigmoid`: P(yes); `linear`: values."""
    outputs: np.ndarray
    """Outputs of the network, (examples, …, units); values are in the units of the data."""
    classes: tuple[str, ...]
    """Names of the classes; empty if they have none."""
    notes: tuple[str, ...] = ()
    """Notes about how the rows were read."""
    id_column: tuple[str, list[str]] | None = None
    """Name and values of the column that identifies rows, if the run has one."""

    def class_name(self, index: int) -> str:
        """The name of a class; its number if it has no name."""
        return self.classes[index] if index < len(self.classes) else str(index)

    def predicted_labels(self) -> np.ndarray:
        """The most likely class of every example: its name, or its number if it has none.

        The values themselves if the network predicts values; 0 or 1 for every unit of several
        units with a sigmoid.
        """
        if self.output_activation == "softmax":
            numbers = self.outputs.argmax(axis=-1)
        elif self.output_activation == "sigmoid":
            numbers = (_drop_single_unit(self.outputs) >= 0.5).astype(np.int64)
        else:
            return _drop_single_unit(self.outputs)
        if not self.classes or numbers.max(initial=0) >= len(self.classes):
            return numbers
        return np.array(self.classes)[numbers]

    def class_probabilities(self) -> np.ndarray:
        """Probabilities, (examples, …, classes); one sigmoid unit gives P(no) and P(yes).

        TaskError if the network predicts values.
        """
        if self.output_activation not in ("softmax", "sigmoid"):
            raise TaskError(
                "this network predicts values, not probabilities: its output is "
                f"{self.output_activation}"
            )
        if self.output_activation == "sigmoid" and self.outputs.shape[-1] == 1:
            return np.concatenate([1 - self.outputs, self.outputs], axis=-1)
        return self.outputs

    def to_columns(self) -> dict[str, list[Any]]:
        """Columns of a table: the identifier, the prediction, and the probability of each class.

        `predicted` is a class name or number, or a value; with several values per example there is
        a column `predicted_1` for each. With a class at every position, `predicted` has all of them
        in one text, and there are no probabilities.
        """
        columns: dict[str, list[Any]] = {}
        if self.id_column is not None:
            columns[self.id_column[0]] = self.id_column[1]
        labels = self.predicted_labels()
        is_class = self.output_activation in ("softmax", "sigmoid")
        if labels.ndim == 1:
            columns["predicted"] = _to_list(labels)
        elif self.outputs.ndim > 2:
            columns["predicted"] = [" ".join(map(str, row.ravel().tolist())) for row in labels]
            return columns
        else:
            columns |= {
                f"predicted_{unit + 1}": _to_list(labels[:, unit])
                for unit in range(labels.shape[1])
            }
        if is_class:
            probabilities = self.class_probabilities()
            columns |= {
                f"probability_{self._unit_name(unit)}": _to_rounded_list(probabilities[:, unit])
                for unit in range(probabilities.shape[1])
            }
        return columns

    def _unit_name(self, unit: int) -> str:
        """The class of an output unit; independent sigmoid units are numbered from 1."""
        is_independent = self.output_activation == "sigmoid" and self.outputs.shape[-1] > 1
        return str(unit + 1) if is_independent else self.class_name(unit)

    def to_records(self) -> Iterator[dict[str, Any]]:
        """One JSON object per example, with the keys of `to_columns`.

        With a prediction at every position, `predicted` is a list of them, and `probabilities` has
        those of all classes at each position.
        """
        columns = self.to_columns()
        if self.outputs.ndim > 2:
            labels = self.predicted_labels()
            columns["predicted"] = [_to_list(row) for row in labels]
            if self.output_activation in ("softmax", "sigmoid"):
                columns["probabilities"] = _to_rounded_list(self.class_probabilities())
        return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))

    def to_section(self, width: int) -> PageSection:
        """A table with one row per example: its identifier or number, the most likely class first.

        Examples are numbered from 0.
        """
        heading = {"softmax": "most likely", "sigmoid": "P(yes)"}.get(
            self.output_activation, "value"
        )
        count = len(self.outputs)
        id_name, row_ids = self.id_column or ("", [str(index) for index in range(count)])
        rows = [(row_ids[index], *self._format_row(index)) for index in range(count)]
        return PageSection(title="", table_head=(id_name, heading, ""), table_rows=rows)

    def _format_row(self, index: int) -> tuple[str, str]:
        output = self.outputs[index]
        if self.output_activation != "softmax":
            return shorten(" ".join(map(_format_value, output.ravel())), MAX_CELL), ""
        if output.ndim > 1:  # a class at every position
            names = (self.class_name(int(label)) for label in output.argmax(axis=-1).ravel())
            return shorten(" ".join(names), MAX_CELL), ""
        best, *others = output.argsort()[::-1][:SHOWN_CLASSES].tolist()
        return f"{self.class_name(best)} {output[best]:.3f}", "  ".join(
            f"{self.class_name(label)} {output[label]:.3f}" for label in others
        )


def describe_rows(run: TrainedRun) -> str:
    """The files that `predict_rows` reads for this run, with the columns they need."""
    network = run.load_network()
    columns = run.metadata("data/columns")
    if columns:
        hidden_count = len(columns) - MAX_LISTED_COLUMNS
        names = ", ".join(columns[:MAX_LISTED_COLUMNS])
        more = f" and {hidden_count} more" if hidden_count > 0 else ""
        return f"a table (.csv or .tsv) with the columns {names}{more}"
    shape = ", ".join(["rows", *(str(size) for size in network.input)])
    suffixes = ".npz or .npy" if len(network.input) > 1 else ".npz, .npy, .csv or .tsv"
    return f"an array of shape ({shape}) in {suffixes}, or data like that of the training"


def predict_rows(run: TrainedRun, source: Any, model: nn.Module | None = None) -> PredictedRows:
    """Predict for the rows of a table, for arrays, or for any data the run could be trained on.

    `source` is the path of a file, the bytes of a table, a data frame, an array, or a dict of
    arrays by name. Columns are matched by name if the training data had names. `model` is that of
    the run, if the caller has loaded it.
    """
    network = run.load_network()
    arrays, scale, notes, id_column = load_inputs(run, source)
    check_inputs(arrays, network, _format_source(source))
    outputs = _compute_outputs(model or run.load_model(), network, arrays, scale)
    target_scaler = load_target_scaler(run)
    if target_scaler is not None:
        outputs = target_scaler.inverse_transform(outputs)
    return PredictedRows(
        output_activation=network.output_activation,
        outputs=outputs,
        classes=load_class_names(run),
        notes=notes,
        id_column=id_column,
    )


def predict_arrays(run: TrainedRun, x: Any, model: nn.Module | None = None) -> PredictedRows:
    """Predict for inputs in memory; the same as `predict_rows`."""
    return predict_rows(run, x, model)


def _format_source(source: Any) -> str:
    """Name of the data in messages."""
    if isinstance(source, str | Path):
        return Path(source).name
    return STANDARD_INPUT if isinstance(source, bytes) else "the inputs"


def _compute_outputs(
    model: nn.Module, network: Network, arrays: Mapping[str, np.ndarray], scale: float = 1.0
) -> np.ndarray:
    """Outputs of the model for all examples, batch by batch, in evaluation mode.

    The first input is multiplied by `scale`.
    """
    argument_names = (
        ("source", "target", "mask", "target_mask") if network.is_encoder_decoder else ("x", "mask")
    )
    outputs, device = [], next(model.parameters()).device
    dtype = torch.int64 if network.takes_token_ids else torch.float32
    with torch.no_grad():
        for first in range(0, len(arrays[argument_names[0]]), BATCH_SIZE):
            batch = {
                name: torch.tensor(np.asarray(array[first : first + BATCH_SIZE]))
                for name, array in arrays.items()
            }
            inputs = [
                None
                if name not in batch
                else batch[name] != 0
                if "mask" in name
                else batch[name].to(dtype)
                for name in argument_names
            ]
            if scale != 1 and inputs[0] is not None:
                inputs[0] = inputs[0] * scale
            outputs.append(
                model(*(tensor if tensor is None else tensor.to(device) for tensor in inputs))
                .float()
                .cpu()
                .numpy()
            )
    return np.concatenate(outputs)


def _drop_single_unit(outputs: np.ndarray) -> np.ndarray:
    """Outputs without their last axis if the network has one unit."""
    return outputs[..., 0] if outputs.shape[-1] == 1 else outputs


def _format_value(value: float) -> str:
    """Four significant digits; a large value as a whole number, `222700` and not `2.227e+05`."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def _to_list(values: np.ndarray) -> list[Any]:
    """Class names, class numbers, or values with 7 significant digits."""
    if values.dtype.kind != "f":
        return values.tolist()
    if values.ndim > 1:
        return [_to_list(row) for row in values]
    return [float(f"{value:.7g}") for value in values.tolist()]


def _to_rounded_list(values: np.ndarray) -> list[Any]:
    return np.round(values.astype(np.float64), 6).tolist()
