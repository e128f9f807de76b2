"""Named arrays → examples: splits by name, words as class numbers, columns of `x` as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from neural.core.errors import TaskError
from neural.data.array_conversion import check_class_count, check_text_labels
from neural.data.array_names import select_splits
from neural.data.class_labels import encode_label_arrays
from neural.data.input_checks import format_array_shape
from neural.data.source import Examples
from neural.data.table_cells import TableCells, create_table
from neural.data.table_columns import TableSettings
from neural.data.table_examples import tabulate
from neural.data.targets import takes_classes

if TYPE_CHECKING:
    import numpy as np

    from neural.language.network import Network


def create_array_examples(
    arrays: Mapping[str, np.ndarray],
    data_name: str,
    network: Network,
    classes: tuple[str, ...] = (),
) -> Examples:
    """Examples from arrays such as `x`, `y`, `x_valid`. Raises TaskError if some are missing.

    `classes` are the class names of the training data, if these are other data.
    """
    train, valid, notes = select_splits(arrays, data_name, network)
    if "y" in train and network.loss is not None and takes_classes(network.loss):
        check_text_labels(train["y"], f"{data_name}: `y`")
        train, valid, classes = encode_label_arrays(train, valid, data_name, classes)
        check_class_count(classes, network, f"{data_name}: `y`")
    return Examples(
        data_name=data_name, train=train, valid=valid, notes=tuple(notes), classes=classes
    )


def tabulate_arrays(
    examples: Examples,
    settings: TableSettings,
    cells: TableCells | None = None,
    valid_cells: TableCells | None = None,
) -> Examples:
    """The examples with `x` as a table, if the settings of columns are not the default ones.

    `cells` are the inputs as a table if they have column names; else columns are numbered from 1.
    """
    if settings == TableSettings():
        return examples
    name = examples.data_name
    if settings.target is not None:
        raise TaskError(f"{name}: `table.target` names a column, but the targets are an array, `y`")
    if cells is None:
        for arrays in filter(None, (examples.train, examples.valid)):
            if "x" not in arrays or arrays["x"].ndim != 2:
                shape = format_array_shape(arrays["x"]) if "x" in arrays else "missing"
                raise TaskError(
                    f"{name}: the settings of `table` need rows of columns, but `x` is {shape}"
                )
        cells = create_table(examples.train["x"], name)
        valid_cells = None if examples.valid is None else create_table(examples.valid["x"], name)
    valid = examples.valid
    if valid is not None:
        valid = {key: array for key, array in valid.items() if key != "x"}
    return tabulate(replace(examples, valid=valid), settings, cells, valid_cells)
