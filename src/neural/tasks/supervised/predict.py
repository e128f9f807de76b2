"""Predictions of a supervised run for arrays, tables and data sets.

A network with two streams is an encoder-decoder, with a source and a target sequence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.core.errors import TaskError
from neural.core.escape import shorten
from neural.core.page_section import PageSection
from neural.data.input_checks import check_inputs, reshape_rows
from neural.data.loading import load_data, locate_data
from neural.data.numpy_files import is_archive, load_npy, load_npz
from neural.data.source import Examples
from neural.data.sources.table import (
    MAX_LISTED_COLUMNS,
    SUFFIXES,
    TableCells,
    is_target_column,
    match_columns,
    read_cells,
)
from neural.language.network import Network
from neural.nn.lazy_torch import torch
from neural.tasks.task import TrainedRun

BATCH_SIZE = 256
"""Examples per forward pass."""
SHOWN_CLASSES = 3
"""Classes shown for an example in the table, most likely first; the JSON has all."""
MAX_CELL = 60
"""Maximum number of characters in a table cell."""
INPUT_NAMES = ("x", "mask", "source", "target", "target_mask")
"""Names of arrays that networks take as inputs; `target` is the input of the decoder."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedRows:
    """Predictions for the rows of a file."""

    head: str
    """Output activation. `softmax`: class probabilities; `sigmoid`: P(yes); `linear`: values."""
    outputs: np.ndarray
    """Outputs of the network, (examples, …, units)."""
    classes: tuple[str, ...]
    """Names of the classes; empty if they have none."""
    notes: tuple[str, ...] = ()
    """Notes about how the rows were read."""

    def to_dict(self, index: int) -> dict[str, Any]:
        """The prediction for one example, as JSON."""
        output = self.outputs[index]
        if self.head != "softmax":
            return {"probability" if self.head == "sigmoid" else "value": _to_rounded_list(output)}
        likely_class = output.argmax(axis=-1)
        record: dict[str, Any] = {
            "class": likely_class.tolist(),
            "probabilities": _to_rounded_list(output),
        }
        return record | (
            {"name": self.class_name(int(likely_class))}
            if self.classes and output.ndim == 1
            else {}
        )

    def class_name(self, index: int) -> str:
        """The name of a class; its number if it has no name."""
        return self.classes[index] if index < len(self.classes) else str(index)

    def to_records(self) -> Iterator[dict[str, Any]]:
        """One JSON object per example."""
        return (self.to_dict(index) for index in range(len(self.outputs)))

    def to_section(self, width: int) -> PageSection:
        """A table with one row per example, the most likely class first."""
        heading = {"softmax": "most likely", "sigmoid": "P(yes)"}.get(self.head, "value")
        rows = [(str(index), *self._format_row(index)) for index in range(len(self.outputs))]
        return PageSection(title="", table_head=("", heading, ""), table_rows=rows)

    def _format_row(self, index: int) -> tuple[str, str]:
        output = self.outputs[index]
        if self.head != "softmax":
            return shorten(" ".join(f"{value:.4g}" for value in output.ravel()), MAX_CELL), ""
        if output.ndim > 1:  # a class at every position
            names = (self.class_name(int(label)) for label in output.argmax(axis=-1).ravel())
            return shorten(" ".join(names), MAX_CELL), ""
        best, *others = output.argsort()[::-1][:SHOWN_CLASSES].tolist()
        return f"{self.class_name(best)} {output[best]:.3f}", "  ".join(
            f"{self.class_name(label)} {output[label]:.3f}" for label in others
        )


def predict_rows(run: TrainedRun, source: str) -> PredictedRows:
    """Predict for an .npz, .npy, .csv or .tsv file, or for any data the run could be trained on."""
    network = run.load_network()
    arrays, scale, notes = _load_inputs(source, network, run)
    check_inputs(arrays, network, Path(source).name)
    argument_names = (
        ("source", "target", "mask", "target_mask") if network.has_two_streams else ("x", "mask")
    )
    model, outputs = run.load_model(), []
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
            outputs.append(model(*inputs).float().numpy())
    return PredictedRows(
        head=network.head_activation,
        outputs=np.concatenate(outputs),
        classes=_class_names(run),
        notes=notes,
    )


class PredictionInputs(NamedTuple):
    """Inputs of the network."""

    arrays: dict[str, np.ndarray]
    """Arrays by name (see INPUT_NAMES), without labels."""
    scale: float = 1.0
    """Factor by which the first input is multiplied; see `Examples.scale`."""
    notes: tuple[str, ...] = ()


def _load_inputs(source: str, network: Network, run: TrainedRun) -> PredictionInputs:
    """Read a file of arrays or rows, or any data the run could be trained on."""
    path = Path(source)
    suffix = path.suffix.lower()
    if path.is_file() and suffix in (".npz", ".npy"):
        return PredictionInputs(_load_arrays(path, network))
    if path.is_file() and suffix in SUFFIXES:
        x, notes = _load_table(path, network, run)
        return PredictionInputs({"x": x}, notes=notes)
    examples = load_data(locate_data(source, Path()), network)
    return PredictionInputs(
        {name: array for name, array in examples.train.items() if name in INPUT_NAMES},
        examples.scale,
    )


def _load_arrays(path: Path, network: Network) -> dict[str, np.ndarray]:
    arrays = load_npz(path) if is_archive(path) else {"x": load_npy(path)}
    if len(arrays) == 1 and not network.has_two_streams:
        arrays = {"x": next(iter(arrays.values()))}
    for name in ("source", "target") if network.has_two_streams else ("x",):
        if name not in arrays:
            raise TaskError(
                f"{path.name}: there is no array `{name}`; it has {', '.join(arrays) or 'none'}"
            )
    return {name: array for name, array in arrays.items() if name in INPUT_NAMES}


def _load_table(
    path: Path, network: Network, run: TrainedRun
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Inputs from columns, matched by name if the training data had names; and notes."""
    columns, target = _training_columns(run)
    table = read_cells(path, columns)
    notes: tuple[str, ...] = ()
    if columns and table.has_header:
        positions = match_columns(table, columns, target)
    else:
        positions = _columns_by_position(table, network)
        if columns and len(positions) == len(columns):
            shown = ", ".join(columns[:MAX_LISTED_COLUMNS]) + (
                " …" if len(columns) > MAX_LISTED_COLUMNS else ""
            )
            notes = (
                f"{path.name} has no column names; its columns are used as {shown}, in this order",
            )
    return reshape_rows(table.to_numbers(positions), network, path.name), notes


def _columns_by_position(table: TableCells, network: Network) -> list[int]:
    """All columns in order, without the target column.

    The target column is found by its name, or is the last one if there is one column too many.
    """
    sizes = [dim for dim in network.input if isinstance(dim, int)]
    width = math.prod(sizes) if sizes else len(table.names)
    positions = [index for index, name in enumerate(table.names) if not is_target_column(name)]
    return positions[:-1] if len(positions) == width + 1 == len(table.names) else positions


def _training_columns(run: TrainedRun) -> tuple[list[str], str | None]:
    """Names of the input columns and of the target column.

    Empty and None unless the run was trained on a table with a header.
    """
    columns = run.metadata("data/columns")
    if columns is not None:
        return columns, run.metadata("data/target")
    examples = _load_training_examples(run)  # a run from before these names were saved
    return ([], None) if examples is None else (list(examples.columns), examples.target)


def _class_names(run: TrainedRun) -> tuple[str, ...]:
    """Names of the classes, from the run or its training data."""
    classes = run.metadata("data/classes")
    examples = _load_training_examples(run) if classes is None else None
    return tuple(classes or (examples.classes if examples is not None else ()))


def _load_training_examples(run: TrainedRun) -> Examples | None:
    """The training data of the run, if it still exists."""
    try:
        task: Any = run.load_task()
    except TaskError:
        return None
    return task.data.examples


def _to_rounded_list(values: np.ndarray) -> list[Any]:
    return np.round(values.astype(np.float64), 6).tolist()
