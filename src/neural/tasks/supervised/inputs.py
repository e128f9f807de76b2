"""Data for a trained run: inputs to predict for, and labelled examples to evaluate on.

A run saves the names of its columns and classes, and how it converts columns to numbers
(neural/data/table_preprocessing.py). Other data is read by these names and converted the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural.core.errors import TaskError
from neural.data.array_conversion import is_frame, to_array
from neural.data.loading import load_data, locate_data
from neural.data.numpy_files import is_archive, load_npy, load_npz
from neural.data.source import DataSchema, Examples
from neural.data.table_cells import (
    SUFFIXES,
    TableCells,
    create_table,
    is_target_column,
    parse_table_text,
    read_table_file,
)
from neural.data.table_columns import (
    TableSettings,
    describe_extra_columns,
    find_extra_columns,
    list_columns,
    match_columns,
)
from neural.data.table_examples import apply_preprocessor, fit_examples, reshape_features
from neural.data.table_preprocessing import FittedColumn, TablePreprocessor
from neural.data.target_scaler import TargetScaler
from neural.language.network import Network
from neural.tasks.task import TrainedRun

INPUT_NAMES = ("x", "mask", "source", "target", "target_mask")
"""Names of arrays that networks take as inputs. `x` is the input; an encoder-decoder takes `source`
and `target`, the input of its decoder, instead. Masks are False for padding."""
STANDARD_INPUT = "standard input"
"""Name in messages of a text that has no file."""


class PredictionInputs(NamedTuple):
    """Inputs of the network."""

    arrays: dict[str, np.ndarray]
    """Arrays by name (see INPUT_NAMES), without labels."""
    scale: float = 1.0
    """Factor by which the first input is multiplied; see `Examples.scale`."""
    notes: tuple[str, ...] = ()
    id_column: tuple[str, list[str]] | None = None
    """Name and values of the column that identifies rows (`table.id`), if there is one."""


def load_inputs(run: TrainedRun, source: Any) -> PredictionInputs:
    """Read inputs to predict for.

    `source` is the path of a table or of arrays, the bytes of a table, a data frame, an array, a
    dict of arrays by name, or any data that the run could be trained on.
    """
    network = run.load_network()
    if isinstance(source, bytes):
        return _convert_table(run, network, _parse_bytes(run, source))
    if isinstance(source, str | Path):
        path = Path(source)
        suffix = path.suffix.lower()
        if path.is_file() and suffix in SUFFIXES:
            cells = read_table_file(path, load_schema(run).columns)
            return _convert_table(run, network, cells)
        if path.is_file() and suffix in (".npz", ".npy"):
            return _convert_arrays(run, network, _load_arrays(path, network), path.name)
        examples = load_data(locate_data(source, Path()), network)
        arrays = {name: array for name, array in examples.train.items() if name in INPUT_NAMES}
        return PredictionInputs(arrays, examples.scale)
    if is_frame(source):
        return _convert_table(run, network, create_table(source, "`X`"))
    values = dict(source) if isinstance(source, Mapping) else {"x": source}
    if is_frame(values.get("x")):
        inputs = _convert_table(run, network, create_table(values.pop("x"), "`X`"))
        others = {name: to_array(value, f"`{name}`") for name, value in values.items()}
        return inputs._replace(arrays={**inputs.arrays, **_select_inputs(others)})
    arrays = {
        name: to_array(value, f"`{'X' if name == 'x' else name}`")
        for name, value in values.items()
        if name in INPUT_NAMES
    }
    for name in ("source", "target") if network.is_encoder_decoder else ("x",):
        if name not in arrays:
            raise TaskError(f"{network.name} takes an array `{name}`, got {', '.join(values)}")
    return _convert_arrays(run, network, arrays, "the inputs")


def load_labelled_examples(run: TrainedRun, source: Any) -> Examples:
    """Examples with targets, in the form that the run's network takes.

    `source` is a value of the `data` setting: a path, the name of a dataset, or arrays from Python.
    Columns and classes are those of the training data, in its order.
    """
    network = run.load_network()
    examples = load_data(
        locate_data(source, Path()), network, table_settings(run), load_schema(run)
    )
    preprocessor = load_preprocessor(run)
    if preprocessor is None:  # nothing was fitted in training: columns are used as they are
        every_row = np.arange(0 if examples.table is None else len(examples.table.cells))
        return fit_examples(examples, network, every_row)[0]
    return apply_preprocessor(examples, preprocessor, network)


def load_schema(run: TrainedRun) -> DataSchema:
    """Names of columns and classes in the training data of a run."""
    columns = run.metadata("data/columns")
    if columns is not None:
        classes = tuple(run.metadata("data/classes") or ())
        return DataSchema(tuple(columns), run.metadata("data/target"), classes)
    if run.metadata("data/preprocessing") is not None:  # a table or array without column names
        return DataSchema(classes=tuple(run.metadata("data/classes") or ()))
    examples = _load_training_examples(run)  # older versions did not save the names
    return DataSchema() if examples is None else examples.schema


def load_preprocessor(run: TrainedRun) -> TablePreprocessor | None:
    """The conversion of columns that was fitted in training; None if there was none."""
    saved = run.metadata("data/preprocessing")
    return None if saved is None else TablePreprocessor.from_dict(saved)


def load_target_scaler(run: TrainedRun) -> TargetScaler | None:
    """How targets were standardised in training; None if they were not."""
    saved = run.metadata("data/target_scaler")
    return None if saved is None else TargetScaler.from_dict(saved)


def table_settings(run: TrainedRun) -> TableSettings:
    """The settings of columns that the run was trained with."""
    return getattr(run.load_experiment(), "table", TableSettings())


def load_class_names(run: TrainedRun) -> tuple[str, ...]:
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


def _parse_bytes(run: TrainedRun, content: bytes) -> TableCells:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TaskError(f"{STANDARD_INPUT} cannot be read: {error}") from None
    return parse_table_text(text, STANDARD_INPUT, load_schema(run).columns)


def _load_arrays(path: Path, network: Network) -> dict[str, np.ndarray]:
    arrays = load_npz(path) if is_archive(path) else {"x": load_npy(path)}
    if len(arrays) == 1 and not network.is_encoder_decoder:
        arrays = {"x": next(iter(arrays.values()))}
    for name in ("source", "target") if network.is_encoder_decoder else ("x",):
        if name not in arrays:
            raise TaskError(
                f"{path.name}: there is no array `{name}`; it has {', '.join(arrays) or 'none'}"
            )
    return _select_inputs(arrays)


def _select_inputs(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array for name, array in arrays.items() if name in INPUT_NAMES}


def _convert_arrays(
    run: TrainedRun, network: Network, arrays: dict[str, np.ndarray], data_name: str
) -> PredictionInputs:
    """Arrays as inputs; `x` is converted as a table if the training data was."""
    if load_preprocessor(run) is None or arrays["x"].ndim != 2:
        return PredictionInputs(arrays)
    inputs = _convert_table(run, network, create_table(arrays["x"], data_name))
    return inputs._replace(arrays={**arrays, **inputs.arrays})


def _convert_table(run: TrainedRun, network: Network, table: TableCells) -> PredictionInputs:
    """Inputs from the columns of a table.

    Columns are matched by name if table and training data have column names, else by position.
    """
    schema, settings, preprocessor = load_schema(run), table_settings(run), load_preprocessor(run)
    notes: list[str] = []
    if schema.columns and table.has_header:
        names = (schema.columns, schema.target, settings)
        positions = match_columns(table, *names)
        notes += describe_extra_columns(table, find_extra_columns(table, *names))
    else:
        positions = (
            _columns_by_position(table, network)
            if preprocessor is None
            else _columns_by_number(table, preprocessor)
        )
        if schema.columns and len(positions) == len(schema.columns):
            notes.append(
                f"{table.data_name} has no column names; its columns are used as "
                f"{list_columns(schema.columns)}, in this order"
            )
    if preprocessor is None:
        names = [table.names[position] for position in positions]
        preprocessor = TablePreprocessor(tuple(map(FittedColumn, names)))
    x, unknown_notes = preprocessor.transform(table, positions, _suggest_key)
    x = reshape_features(x, preprocessor.output_names, network, table.data_name)
    id_column = None
    if settings.id is not None and str(settings.id) in table.names:
        position = table.names.index(str(settings.id))
        id_column = str(settings.id), table.read_words(position, keep_missing_words=True)
    return PredictionInputs({"x": x}, 1.0, (*notes, *unknown_notes), id_column)


def _columns_by_position(table: TableCells, network: Network) -> list[int]:
    """All columns in order, without the target column.

    The target column is found by its name, or is the last one if there is one column too many.
    """
    sizes = [dim for dim in network.input if isinstance(dim, int)]
    width = math.prod(sizes) if sizes else len(table.names)
    positions = [index for index, name in enumerate(table.names) if not is_target_column(name)]
    return positions[:-1] if len(positions) == width + 1 == len(table.names) else positions


def _columns_by_number(table: TableCells, preprocessor: TablePreprocessor) -> list[int]:
    """Columns of a table without names: all of them, or those that the training used."""
    names = [column.name for column in preprocessor.columns]
    if len(table.names) == len(names):
        return list(range(len(names)))
    numbers = [int(name) for name in names if name.isdecimal()]
    if len(numbers) == len(names) and max(numbers) <= len(table.names):
        return [number - 1 for number in numbers]
    raise TaskError(
        f"{table.data_name} has {len(table.names)} columns; the run was trained on "
        f"{len(names)}: {list_columns(names)}"
    )


def _suggest_key(name: str, cell: str) -> str:
    """What helps if a cell of data to predict for is not a number; the cell is "" if missing."""
    if not cell:
        return "fill it, or train again with `table.impute: median`"
    return f"replace it, or train again with `table.categorical: [{name}]`"
