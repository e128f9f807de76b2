"""Which columns of a table are features, target, identifier and group; the settings for it.

The target is what the network predicts. Features are its inputs. The identifier (`id`) is copied to
predictions. A split never separates rows with the same value in the group column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.core.settings import Settings
from neural.core.settings_errors import SettingsConflictError
from neural.core.settings_fields import ValueDescription
from neural.data.table_cells import TARGET_COLUMNS, TableCells, is_date, is_target_column

if TYPE_CHECKING:
    from neural.data.source import DataSchema

MAX_LISTED_COLUMNS = 8
"""Messages list up to this many columns or problems."""
ColumnName = Annotated[
    str | int, ValueDescription("the name of a column, or its number from 1 without a header")
]
ColumnNames = Annotated[
    tuple[str | int, ...],
    ValueDescription("a list of columns: names, or numbers from 1 without a header"),
]


class TableSettings(Settings):
    """Columns of a table: which are used, and how they become numbers."""

    target: ColumnName | None = Field(
        None,
        description="The column to predict; by default `label`, `target` or `y`, else the last.",
    )
    features: ColumnNames | None = Field(
        None, description="The input columns, in this order; by default all others."
    )
    drop: ColumnNames = Field((), description="Columns that are left out.")
    categorical: ColumnNames = Field(
        (),
        description="Columns of categories, one-hot encoded; a target in this list has classes, "
        "even if they are numbers.",
    )
    impute: Literal["none", "mean", "median", "most_frequent"] = Field(
        "none",
        description="What replaces missing cells; categories always get the most frequent one.",
    )
    standardize: bool = Field(
        False, description="Subtract the mean and divide by the standard deviation."
    )
    id: ColumnName | None = Field(
        None, description="A column that identifies rows: not an input, copied to predictions."
    )
    group: ColumnName | None = Field(
        None, description="Rows with an equal value here are never split; not an input."
    )

    def verify(self) -> Iterator[SettingsConflictError]:
        """Yield an error for each column that has two roles."""
        features = self.features or ()
        for key in ("target", "id", "group"):
            column = getattr(self, key)
            for other, columns in (("features", features), ("drop", self.drop)):
                if column is not None and column in columns:
                    yield SettingsConflictError(
                        f"`{column}` is in `{other}` and is the `{key}`", other, key
                    )
        for column in (*features, *self.categorical):
            if column in self.drop:
                yield SettingsConflictError(
                    f"`{column}` is dropped and used", "drop", help="keep one of the two"
                )
        if self.target is not None and self.target in (self.id, self.group):
            yield SettingsConflictError(f"`{self.target}` is the target and more", "target")

    def named_columns(self) -> list[str]:
        """All column names that the settings mention; numbers are left out."""
        single = [self.target, self.id, self.group]
        columns = [*single, *(self.features or ()), *self.drop, *self.categorical]
        return [column for column in columns if isinstance(column, str)]


@dataclass(frozen=True)
class ColumnRoles:
    """Indices of the columns of a table, by their use."""

    features: tuple[int, ...]
    target: int | None = None
    id: int | None = None
    group: int | None = None


def assign_columns(
    table: TableCells, settings: TableSettings, *, has_target: bool = True
) -> ColumnRoles:
    """Columns of training data. Raises TaskError, naming the key to set, if they are not clear.

    `has_target` is false if the targets are not in the table, but in an array of their own.
    """
    _refuse_duplicates(table)
    find = _ColumnFinder(table)
    row_id, group = find.optional(settings.id, "id"), find.optional(settings.group, "group")
    dropped = find.several(settings.drop, "drop")
    features = None if settings.features is None else find.several(settings.features, "features")
    unavailable = {*dropped, *(features or ()), row_id, group}
    candidates = [column for column in range(len(table.names)) if column not in unavailable]
    target = None
    if has_target:
        target = find.optional(settings.target, "target")
        target = _select_target(table, candidates) if target is None else target
    find.several(settings.categorical, "categorical")
    if features is None:
        features = [column for column in candidates if column != target]
    if not features:
        raise TaskError(
            f"{table.data_name} has one column; it needs at least one number and the target"
            if len(table.names) == 1
            else f"{table.data_name}: there is no column left for the features; "
            "`table.target` and `table.drop` name the others"
        )
    return ColumnRoles(tuple(features), target, row_id, group)


def match_columns(
    table: TableCells, columns: Sequence[str], target: str | None, settings: TableSettings
) -> list[int]:
    """Indices in a table of the columns that a network was trained on, matched by name.

    `columns` and `target` are the names in the training data; the table may lack the target column,
    and may have further columns (see `find_extra_columns`). Raises TaskError for missing or
    duplicate columns.
    """
    positions = {name: position for position, name in enumerate(table.names)}
    missing = [name for name in columns if name not in positions]
    unknown = find_extra_columns(table, columns, target, settings) if missing else []
    counts, trained_counts = Counter(table.names), Counter(columns)
    duplicates = [name for name in trained_counts if max(trained_counts[name], counts[name]) > 1]
    problems = []
    for name in missing:
        suggestion = suggest_name(name, unknown)
        problems.append(f"there is no column `{name}`" + (f" ({suggestion})" if suggestion else ""))
    problems += [f"the column `{name}` appears twice" for name in duplicates]
    if problems:
        more_problems = (
            f" and {len(problems) - MAX_LISTED_COLUMNS} more"
            if len(problems) > MAX_LISTED_COLUMNS
            else ""
        )
        raise TaskError(
            f"{table.data_name}: {'; '.join(problems[:MAX_LISTED_COLUMNS])}{more_problems}. "
            f"The run was trained on: {list_columns(columns)}"
        )
    return [positions[name] for name in columns]


def find_extra_columns(
    table: TableCells, columns: Sequence[str], target: str | None, settings: TableSettings
) -> list[str]:
    """Columns of a table that the training data did not have; the arguments of `match_columns`.

    Empty if the settings name the features: then all other columns are meant to be left out.
    """
    if settings.features is not None:
        return []
    known = {*columns, target, *settings.drop, settings.id, settings.group}
    return [name for name in table.names if name not in known and not is_target_column(name)]


def describe_extra_columns(table: TableCells, names: Sequence[str]) -> list[str]:
    """A note that columns are ignored; no note without any."""
    if not names:
        return []
    word, verb = ("column", "was") if len(names) == 1 else ("columns", "were")
    return [
        f"{table.data_name}: the {word} {list_columns(names)} {verb} not in the training data and "
        f"{'is' if len(names) == 1 else 'are'} ignored"
    ]


def select_trained_columns(
    settings: TableSettings, schema: DataSchema, names: Sequence[str]
) -> TableSettings:
    """Settings for other data, with columns `names`, that choose the columns of the training data.

    Columns that the training did not use may be missing there.
    """
    group = settings.group if settings.group in names else None
    changes = {"features": schema.columns, "drop": (), "id": None}
    return settings.model_copy(update={**changes, "group": group})


def list_columns(names: Sequence[str]) -> str:
    """Column names for a message; a long list is cut."""
    return ", ".join(names[:MAX_LISTED_COLUMNS]) + (" …" if len(names) > MAX_LISTED_COLUMNS else "")


def suggest_key(name: str, cell: str) -> str:
    """The keys that help if a cell of a feature is not a number; the cell is "" if missing."""
    if is_date(cell):
        return f"it is a date: `table.drop: [{name}]` leaves the column out"
    first = (
        f"`table.categorical: [{name}]` makes categories of the words"
        if cell
        else "`table.impute: median` fills it"
    )
    return f"{first}, `table.drop: [{name}]` leaves it out"


class _ColumnFinder:
    """Finds the columns that settings name. Raises TaskError for unknown ones."""

    def __init__(self, table: TableCells) -> None:
        self.table = table
        self.positions = {name: column for column, name in reversed([*enumerate(table.names)])}

    def single(self, name: str | int, key: str) -> int:
        """Index of a column by its name, or by its number if there is no header."""
        names = self.table.names
        if isinstance(name, str) and name.strip() in self.positions:
            return self.positions[name.strip()]
        if isinstance(name, int) and not self.table.has_header and 1 <= name <= len(names):
            return name - 1
        if not self.table.has_header:
            raise TaskError(
                f"{self.table.data_name} has no column `{name}` (`table.{key}`): it has no header; "
                f"name columns by their numbers, 1 to {len(names)}"
            )
        hint = suggest_name(str(name), names) or f"its columns are {list_columns(names)}"
        raise TaskError(f"{self.table.data_name} has no column `{name}` (`table.{key}`); {hint}")

    def optional(self, name: str | int | None, key: str) -> int | None:
        """The same for a key that may be unset."""
        return None if name is None else self.single(name, key)

    def several(self, names: Sequence[str | int], key: str) -> list[int]:
        """The same for a list of columns."""
        columns = [self.single(name, key) for name in names]
        counts = Counter(columns)
        for name, column in zip(names, columns, strict=True):
            if counts[column] > 1:
                raise TaskError(f"`table.{key}` names the column `{name}` twice")
        return columns


def _select_target(table: TableCells, candidates: Sequence[int]) -> int:
    """The target column if the settings do not name it: by its name, else the last column."""
    named = [column for column in candidates if is_target_column(table.names[column])]
    if len(named) > 1:
        names = " and ".join(f"`{table.names[column]}`" for column in named)
        raise TaskError(
            f"{table.data_name}: the columns {names} could be the target; "
            f"choose with `table.target: {table.names[named[0]]}`"
        )
    if not candidates:
        raise TaskError(
            f"{table.data_name}: no column is left for the target; set `table.target` to its name "
            f"(by default it is {', '.join(f'`{name}`' for name in TARGET_COLUMNS)} or the last)"
        )
    return named[0] if named else candidates[-1]


def _refuse_duplicates(table: TableCells) -> None:
    for name, count in Counter(table.names).items():
        if count > 1:
            numbers = [str(column + 1) for column, other in enumerate(table.names) if other == name]
            raise TaskError(
                f"{table.data_name}: the name `{name}` stands above columns "
                f"{' and '.join(numbers)}; rename one of them"
            )
