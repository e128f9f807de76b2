"""Columns of a table → numbers: missing cells filled, categories one-hot, numbers standardised.

Everything that depends on data (means, medians, categories) is fitted on the training rows, saved
with the run, and applied unchanged to validation rows and to predictions. The methods are those of
scikit-learn's SimpleImputer, OneHotEncoder(handle_unknown="ignore") and StandardScaler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from neural.core.errors import TaskError
from neural.core.metadata_fields import MetadataField
from neural.data.array_conversion import format_names
from neural.data.class_labels import encode_words
from neural.data.table_cells import DescribeFix, TableCells
from neural.data.table_columns import TableSettings, suggest_key

CONSTANT_TOLERANCE = 10 * float(np.finfo(np.float64).eps)
"""A smaller standard deviation, relative to the mean, is a rounding error: the column is constant."""
MAX_SHOWN_WORDS = 3
"""A note shows up to this many unknown categories."""


@dataclass(frozen=True)
class FittedColumn:
    """How one column becomes numbers."""

    name: str
    fill: float | str | None = None
    """What replaces a missing cell; None if missing cells are errors."""
    mean: float = 0.0
    std: float = 1.0
    """Numbers are (x − mean) / std."""
    categories: tuple[str, ...] | None = None
    """Categories in the order of their one-hot columns; None for a column of numbers."""

    @property
    def output_names(self) -> list[str]:
        """Names of the resulting columns: `age`, or `city=Paris` for each category."""
        if self.categories is None:
            return [self.name]
        return [f"{self.name}={category}" for category in self.categories]


@dataclass(frozen=True)
class TablePreprocessor:
    """The fitted conversion of all feature columns, in the order of the network's inputs."""

    columns: tuple[FittedColumn, ...]

    @property
    def output_names(self) -> list[str]:
        """Names of the resulting columns."""
        return [name for column in self.columns for name in column.output_names]

    def transform(
        self, table: TableCells, positions: Sequence[int], describe_fix: DescribeFix = suggest_key
    ) -> tuple[np.ndarray, list[str]]:
        """Numbers (rows, resulting columns), and notes. `positions` are indices in the table.

        A category that was not in the training rows becomes zeros in all columns, with a note.
        Raises TaskError for a cell that is not a number.
        """
        blocks, notes = [], []
        for column, position in zip(self.columns, positions, strict=True):
            if column.categories is None:
                numbers = table.read_numbers(
                    position, describe_fix, allow_missing=column.fill is not None
                )
                if column.fill is not None:
                    numbers = np.where(np.isnan(numbers), column.fill, numbers)
                if (column.mean, column.std) != (0.0, 1.0):
                    numbers = (numbers - column.mean) / column.std
                blocks.append(numbers[:, None])
                continue
            words = _fill_words(table, position, column.fill, describe_fix)
            filled_count = table.read_words(position).count("")
            if filled_count:
                notes.append(
                    f"{table.data_name}, column `{column.name}`: missing in {filled_count} "
                    f"row{'s' * (filled_count != 1)}; it becomes `{column.fill}`, the most frequent "
                    "category of the training rows"
                )
            numbers, _ = encode_words(words, column.categories)
            blocks.append(numbers[:, None] == np.arange(len(column.categories)))
            unknown = Counter(words[row] for row in np.flatnonzero(numbers < 0).tolist())
            if unknown:
                shown = ", ".join(f"`{word}`" for word in sorted(unknown)[:MAX_SHOWN_WORDS])
                more = " …" if len(unknown) > MAX_SHOWN_WORDS else ""
                count = sum(unknown.values())
                notes.append(
                    f"{table.data_name}, column `{column.name}`: {shown}{more} in {count} "
                    f"row{'s' * (count != 1)} was not in the training rows; it becomes all zeros"
                )
        return np.concatenate(blocks, axis=1).astype(np.float64), notes

    def to_dict(self) -> dict[str, Any]:
        """JSON data, saved with the run."""
        return {"columns": [asdict(column) for column in self.columns]}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> TablePreprocessor:
        """The preprocessor that `to_dict` saved."""
        columns = [
            FittedColumn(
                column["name"],
                column["fill"],
                column["mean"],
                column["std"],
                None if column["categories"] is None else tuple(column["categories"]),
            )
            for column in data["columns"]
        ]
        return TablePreprocessor(tuple(columns))


def fit_preprocessor(
    table: TableCells, positions: Sequence[int], settings: TableSettings, rows: np.ndarray
) -> tuple[TablePreprocessor, list[str]]:
    """Fit on the training rows, given by their indices; also notes for the user.

    `positions` are the feature columns. Raises TaskError for a cell that is not a number, and for a
    column without any value in the training rows.
    """
    columns, constant_names, categorical = [], [], set(map(str, settings.categorical))
    for position in positions:
        if table.names[position] in categorical:
            column = _fit_categories(table, position, settings, rows)
            is_constant = len(column.categories or ()) == 1
        else:
            column, is_constant = _fit_numbers(table, position, settings, rows)
        columns.append(column)
        if is_constant:
            constant_names.append(column.name)
    notes = []
    if constant_names:
        shown = format_names(constant_names)
        is_one = len(constant_names) == 1
        notes.append(
            f"{table.data_name}: the column{'' if is_one else 's'} {shown} "
            f"{'has' if is_one else 'have'} one value in all training rows; `table.drop: "
            f"[{constant_names[0]}{'' if is_one else ', …'}]` leaves {'it' if is_one else 'them'} out"
        )
    return TablePreprocessor(tuple(columns)), notes


def _fit_numbers(
    table: TableCells, position: int, settings: TableSettings, rows: np.ndarray
) -> tuple[FittedColumn, bool]:
    """A fitted column of numbers, and whether standardising found it constant."""
    fills_missing = settings.impute != "none"
    numbers = table.read_numbers(position, suggest_key, allow_missing=fills_missing)[rows]
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        raise _no_value_error(table, position)
    fill = _compute_fill(known, settings.impute) if fills_missing else None
    mean, std, is_constant = 0.0, 1.0, False
    if settings.standardize:
        filled = numbers if fill is None else np.where(np.isnan(numbers), fill, numbers)
        mean, std = float(filled.mean()), float(filled.std())
        is_constant = std <= CONSTANT_TOLERANCE * max(abs(mean), 1e-300)
        std = 1.0 if is_constant else std
    return FittedColumn(table.names[position], fill, mean, std), is_constant


def _compute_fill(known: np.ndarray, method: str) -> float:
    if method == "most_frequent":
        values, counts = np.unique(known, return_counts=True)
        return float(values[counts.argmax()])  # the smallest of several, as in scikit-learn
    return float(np.median(known) if method == "median" else known.mean())


def _fit_categories(
    table: TableCells, position: int, settings: TableSettings, rows: np.ndarray
) -> FittedColumn:
    words = table.read_words(position)
    counts = Counter(words[row] for row in rows.tolist() if words[row])
    if not counts:
        raise _no_value_error(table, position)
    categories = tuple(sorted(counts))
    fill = None
    if settings.impute != "none":
        fill = max(categories, key=lambda word: counts[word])  # the first of several, by alphabet
    return FittedColumn(table.names[position], fill, categories=categories)


def _fill_words(
    table: TableCells, position: int, fill: float | str | None, describe_fix: DescribeFix
) -> list[str]:
    """Words of a column, with missing cells filled. TaskError if there is nothing to fill them."""
    words = table.read_words(position)
    if fill is None and "" in words:
        fix = describe_fix(table.names[position], "")
        raise TaskError(f"{table.locate(words.index(''), position)}: the cell is empty; {fix}")
    return [word or str(fill) for word in words]


def _no_value_error(table: TableCells, position: int) -> TaskError:
    name = table.names[position]
    return TaskError(
        f"{table.data_name}: the column `{name}` has no value in any training row; "
        f"`table.drop: [{name}]` leaves it out"
    )


def _is_preprocessor(value: Any) -> bool:
    """Whether a JSON value is what `TablePreprocessor.to_dict` returns, or None."""
    if value is None:
        return True
    columns = value.get("columns") if isinstance(value, dict) else None
    return isinstance(columns, list) and all(map(_is_fitted_column, columns))


def _is_fitted_column(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != set(FittedColumn.__dataclass_fields__):
        return False
    categories = value["categories"]
    return (
        isinstance(value["name"], str)
        and all(type(value[key]) in (int, float) for key in ("mean", "std"))
        and value["std"] > 0
        and (
            _is_fill(value["fill"], int, float)
            if categories is None
            else _is_fill(value["fill"], str)
            and isinstance(categories, list)
            and all(isinstance(word, str) for word in categories)
        )
    )


def _is_fill(value: Any, *types: type) -> bool:
    return value is None or type(value) in types


PREPROCESSOR = MetadataField(
    _is_preprocessor, "a mapping with `columns`: name, fill, mean, std and categories of each"
)
"""Type of the metadata entry that holds a preprocessor."""
