"""Tables → examples: targets and groups at once, features after the split into training rows.

The conversion of features (table_preprocessing.py) is fitted on the training rows, which are known
only after the split. Until then, `Examples.table` holds the feature columns. Without settings of
columns there is nothing to fit, and features become numbers at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from neural.core.errors import TaskError
from neural.data.array_conversion import check_class_count, format_names
from neural.data.class_labels import describe_unknown_class, encode_words
from neural.data.input_checks import reshape_rows
from neural.data.source import DataSchema, Examples, UnfittedTable
from neural.data.table_cells import TableCells, is_number
from neural.data.table_columns import (
    ColumnRoles,
    TableSettings,
    assign_columns,
    describe_extra_columns,
    find_extra_columns,
    list_columns,
    match_columns,
)
from neural.data.table_preprocessing import FittedColumn, TablePreprocessor, fit_preprocessor
from neural.data.targets import takes_classes
from neural.language.network import Network
from neural.language.shapes import format_shape


def create_examples(
    cells: TableCells,
    network: Network,
    settings: TableSettings,
    schema: DataSchema | None = None,
) -> Examples:
    """Examples of a table that has a target column.

    `schema` has the names in the training data, if this is other data for the same network.
    """
    extra_notes = []
    if schema is None or not schema.columns or not cells.has_header:
        roles = assign_columns(cells, settings)
    else:
        roles = _match_roles(cells, settings, schema)
        extra_columns = find_extra_columns(cells, schema.columns, schema.target, settings)
        extra_notes = describe_extra_columns(cells, extra_columns)
    assert roles.target is not None
    name = cells.names[roles.target]
    is_class = name in map(str, settings.categorical) or bool(schema and schema.classes)
    y, classes = read_targets(cells, roles.target, is_class=is_class, keep_missing_words=is_class)
    if schema is not None and schema.classes:
        y, classes = _renumber_classes(cells, roles.target, y, classes, schema.classes)
    check_classes(classes, network, f"{cells.data_name}: the target `{name}`")
    examples = Examples(
        data_name=cells.data_name,
        train={"y": y},
        classes=classes,
        columns=tuple(cells.names[column] for column in roles.features) if cells.has_header else (),
        target=name if cells.has_header else None,
        table=UnfittedTable(cells, roles.features, settings),
        groups=read_groups(cells, roles),
        notes=(*cells.notes, *extra_notes),
    )
    if settings != TableSettings():
        return examples
    identity = TablePreprocessor(
        tuple(FittedColumn(cells.names[column]) for column in roles.features)
    )
    return apply_preprocessor(examples, identity, network)


def tabulate(
    examples: Examples,
    settings: TableSettings,
    cells: TableCells,
    valid_cells: TableCells | None = None,
) -> Examples:
    """The examples with their inputs `x` treated as a table without target: `cells`."""
    roles = assign_columns(cells, settings, has_target=False)
    return replace(
        examples,
        train={name: array for name, array in examples.train.items() if name != "x"},
        columns=tuple(cells.names[column] for column in roles.features) if cells.has_header else (),
        table=UnfittedTable(cells, roles.features, settings, valid_cells),
        groups=read_groups(cells, roles),
    )


def fit_examples(
    examples: Examples, network: Network, train_rows: np.ndarray
) -> tuple[Examples, TablePreprocessor | None]:
    """Fit the features on the training rows and convert all rows; None if there is no table."""
    table = examples.table
    if table is None:
        return examples, None
    preprocessor, notes = fit_preprocessor(table.cells, table.features, table.settings, train_rows)
    fitted = apply_preprocessor(examples, preprocessor, network)
    return replace(fitted, notes=(*fitted.notes, *notes)), preprocessor


def apply_preprocessor(
    examples: Examples, preprocessor: TablePreprocessor, network: Network
) -> Examples:
    """The examples with their features as numbers `x`, in the shape that the network takes."""
    table = examples.table
    if table is None:
        return examples
    x, notes = preprocessor.transform(table.cells, table.features)
    names = preprocessor.output_names
    x = reshape_features(x, names, network, examples.data_name)
    valid = examples.valid
    if valid is not None and table.valid_cells is not None:
        valid_x, valid_notes = preprocessor.transform(table.valid_cells, table.features)
        valid = {"x": reshape_features(valid_x, names, network, examples.data_name), **valid}
        notes += valid_notes
    return replace(
        examples,
        train={"x": x, **examples.train},
        valid=valid,
        table=None,
        notes=(*examples.notes, *notes),
    )


def reshape_features(
    x: np.ndarray, names: Sequence[str], network: Network, data_name: str
) -> np.ndarray:
    """Rows in the shape of the network's input. A TaskError lists the columns."""
    sizes = [dim for dim in network.input if isinstance(dim, int)]
    if len(sizes) == len(network.input) and int(np.prod(sizes, dtype=int)) != len(names):
        hint = "choose columns with `table.features` and `table.drop`"
        if len(sizes) == 1:
            hint = f"write `input: ({len(names)},)`, or {hint}"
        raise TaskError(
            f"{data_name} has {len(names)} feature{'s' * (len(names) != 1)} "
            f"({list_columns(names)}), but {network.name} takes {format_shape(network.input)}; "
            f"{hint}"
        )
    return reshape_rows(x, network, data_name)


def read_targets(
    cells: TableCells, column: int, *, is_class: bool, keep_missing_words: bool = False
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Targets as numbers, or words as class numbers with the sorted class names.

    They are words if no cell is a number, or if `is_class` is true. Raises TaskError for a missing
    target; with `keep_missing_words`, a cell such as `none` is a class.
    """
    words = cells.read_words(column, keep_missing_words=keep_missing_words)
    if "" in words:
        row = words.index("")
        raise TaskError(
            f"{cells.locate(row, column)}: {_describe_missing_target(cells, column, row)}"
        )
    if not is_class and any(map(is_number, words)):
        return cells.read_numbers(column, _suggest_target_key), ()
    classes = tuple(sorted(set(words)))
    numbers = {word: number for number, word in enumerate(classes)}
    return np.array([numbers[word] for word in words], dtype=np.int64), classes


def read_groups(cells: TableCells, roles: ColumnRoles) -> np.ndarray | None:
    """Group of each row; None if there is no group column. TaskError for an empty cell."""
    if roles.group is None:
        return None
    words = cells.read_words(roles.group)
    if "" in words:
        raise TaskError(
            f"{cells.locate(words.index(''), roles.group)}: the group is empty; fill it, or leave "
            "out `table.group`"
        )
    return np.array(words)


def check_classes(classes: Sequence[str], network: Network, name: str) -> None:
    """Raise TaskError if the network cannot predict these classes; `name` is that of the target."""
    if not classes or network.loss is None:
        return
    if not takes_classes(network.loss):
        raise TaskError(
            f"{name} has words ({format_names(classes)}), but {network.name} predicts numbers; "
            "choose another column with `table.target`, or the loss "
            '"sparse_categorical_crossentropy"'
        )
    check_class_count(classes, network, name)
    if len(classes) == 1:
        raise TaskError(
            f"{name} is `{classes[0]}` in every row; a classifier needs two classes or more"
        )


def _match_roles(cells: TableCells, settings: TableSettings, schema: DataSchema) -> ColumnRoles:
    """Roles of the columns of other data, by the names in the training data."""
    features = match_columns(cells, schema.columns, schema.target, settings)
    if schema.target not in cells.names:
        raise TaskError(
            f"{cells.data_name} has no column `{schema.target}`, the target of the training data"
        )
    group = str(settings.group) if settings.group is not None else None
    return ColumnRoles(
        tuple(features),
        cells.names.index(schema.target),
        group=cells.names.index(group) if group in cells.names else None,
    )


def _renumber_classes(
    cells: TableCells,
    column: int,
    y: np.ndarray,
    classes: Sequence[str],
    known_classes: tuple[str, ...],
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class numbers by the classes of the training data. TaskError for another class."""
    numbers, unknown = encode_words(classes, known_classes)
    if unknown is not None:
        row = int(np.flatnonzero(y == unknown)[0])
        raise TaskError(
            f"{cells.locate(row, column)}: "
            f"{describe_unknown_class(classes[unknown], known_classes)}"
        )
    return numbers[y], known_classes


def _describe_missing_target(cells: TableCells, column: int, row: int) -> str:
    word = cells.read_words(column, keep_missing_words=True)[row]
    if not word:
        return "the target is empty; remove the row, or name another column with `table.target`"
    return (
        f"the target is `{word}`, which means a missing value; remove the row, or keep it as a class "
        f"with `table.categorical: [{cells.names[column]}]`"
    )


def _suggest_target_key(name: str, cell: str) -> str:
    return f"`table.categorical: [{name}]` makes classes of all its values"
