"""Cells of a table, by column: from CSV, TSV, JSON lines, Parquet, a DataFrame or an array.

A cell is a number or a text. A missing cell is empty, or one of the usual words for it, such as
`NA`; in a column of numbers it is NaN.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.errors import TaskError
from neural.core.json_values import parse_json
from neural.core.optional_packages import import_optional
from neural.data.array_conversion import is_frame, is_null

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""Delimiter by the suffix of the file."""
SUFFIXES = (*DELIMITERS, ".jsonl", ".parquet")
"""Suffixes of the files that are tables."""
SPREADSHEET_SUFFIXES = (".xlsx", ".xls", ".ods")
"""Suffixes of spreadsheets, which are not read."""
TARGET_COLUMNS = ("label", "target", "y")
"""Names of the target column."""
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>", "?"})
"""Texts of missing cells, in lower case: those of pandas, and `?` as in the UCI data sets."""
MAX_SHORT_INTEGER = 1e15
"""Larger numbers are written with an exponent."""
MAX_SHOWN_CELL = 40
"""Characters of a cell that a message shows."""

DescribeFix = Callable[[str, str], str]
"""Function of a column's name and a cell, "" if it is missing: what the user can do about it."""

_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_INTEGER = re.compile(r"-?\d+")
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))"  # 2024-01-31, 31.1.24
    r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"  # 08:30, 08:30:00Z
)


@dataclass(frozen=True, eq=False)
class TableCells:
    """A table. Columns are indices from 0."""

    data_name: str
    """Name in messages: the file's."""
    has_header: bool
    names: tuple[str, ...]
    """Column names; without a header, column numbers from 1."""
    columns: tuple[np.ndarray, ...]
    """One array per column: numbers, or texts as objects."""
    row_numbers: Sequence[int]
    """Number of each row in messages: lines of a file, from 1, or rows of an array, from 0."""
    row_word: str = "line"
    notes: tuple[str, ...] = ()
    """What the user should know about how the cells were read."""

    def __len__(self) -> int:
        return len(self.row_numbers)

    def locate(self, row: int, column: int) -> str:
        """Where a cell is, for messages."""
        position = f"{self.row_word} {self.row_numbers[row]}, column `{self.names[column]}`"
        return f"{self.data_name}: {position}"

    def read_words(self, column: int, *, keep_missing_words: bool = False) -> list[str]:
        """Texts of a column without surrounding spaces; "" where they are missing.

        With `keep_missing_words`, a cell such as `NA` is a word like others.
        """
        values = self.columns[column]
        if values.dtype.kind in "biuf":
            distinct, inverse = np.unique(values, return_inverse=True)
            return np.array(list(map(_format_number, distinct)), dtype=object)[inverse].tolist()
        words = [text.strip() for text in values]
        return words if keep_missing_words else ["" if is_missing(word) else word for word in words]

    def read_numbers(
        self, column: int, describe_fix: DescribeFix, *, allow_missing: bool = False
    ) -> np.ndarray:
        """Numbers of a column; NaN where they are missing. Raises TaskError naming a wrong cell.

        `describe_fix` completes the message.
        """
        values = self.columns[column]
        if values.dtype.kind in "biuf":
            numbers = values.astype(np.float64)
        else:
            numbers = np.array([_parse_number(text) for text in values])
        for row in np.flatnonzero(~np.isfinite(numbers)).tolist():
            cell = values[row]
            is_cell_missing = is_missing(cell) if isinstance(cell, str) else np.isnan(cell)
            if not (is_cell_missing and allow_missing):
                shown = f"`{str(cell).strip()[:MAX_SHOWN_CELL]}`"
                shown = shown if shown != "``" else "an empty cell"
                text = "" if is_cell_missing else str(cell).strip()
                fix = describe_fix(self.names[column], text)
                raise TaskError(
                    f"{self.locate(row, column)}: {shown} is not a number{_explain_number(text)}"
                    f"{fix and '; ' + fix}"
                )
        return numbers


def read_table_file(path: Path, columns: Sequence[str] = ()) -> TableCells:
    """Read a file with one of SUFFIXES.

    A first line that has all names in `columns` is a header, even if they are numbers.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            return _read_parquet(path)
        data = path.read_bytes()
    except OSError as error:
        raise TaskError(f"{path.name} cannot be read: {error}") from None
    text = _decode_text(data, path.name)
    return parse_table_text(text, path.name, columns, suffix=suffix)


def parse_table_text(
    text: str, data_name: str, columns: Sequence[str] = (), *, suffix: str | None = None
) -> TableCells:
    """Parse CSV, TSV or JSON lines. Without a suffix, the first line shows which of them it is."""
    first_line = text.lstrip().partition("\n")[0]
    if suffix is None:
        is_tsv = first_line.count("\t") > first_line.count(",")
        suffix = ".jsonl" if first_line.startswith("{") else ".tsv" if is_tsv else ".csv"
    if suffix == ".jsonl":
        return _parse_json_lines(text, data_name)
    delimiter = DELIMITERS[suffix]
    if delimiter == ",":
        texts = [text for text in first_line.split(";") if not has_decimal_comma(text)]
        if first_line.count(";") > sum(text.count(",") for text in texts):
            delimiter = ";"
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        numbered_rows = [
            (reader.line_num, row) for row in reader if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise TaskError(f"{data_name} cannot be read: {error}") from None
    if not numbered_rows:
        raise TaskError(f"{data_name}: there are no examples; the file is empty")
    first_row = numbered_rows[0][1]
    may_have_commas = delimiter == ";"
    has_header = _has_header(
        [
            cell.replace(",", ".") if may_have_commas and has_decimal_comma(cell) else cell
            for cell in first_row
        ],
        columns,
    )
    body = numbered_rows[1:] if has_header else numbered_rows
    if not body:
        raise TaskError(f"{data_name}: there are no examples below the header")
    for line, row in body:
        if len(row) != len(first_row):
            raise TaskError(
                f"{data_name}: line {line} has {len(row)} cells, "
                f"the first line has {len(first_row)}"
            )
    names = [cell.strip() for cell in first_row] if has_header else _number_columns(len(first_row))
    text_columns: list[Sequence[str]] = list(zip(*(row for _, row in body), strict=True))
    comma_names = []
    for index, cells in enumerate(text_columns):
        if may_have_commas and _has_decimal_commas(cells):
            text_columns[index] = [cell.replace(",", ".") for cell in cells]
            comma_names.append(f"`{names[index]}`")
    notes = (
        (f"{data_name}: numbers with a decimal comma are read in {', '.join(comma_names)}",)
        if comma_names
        else ()
    )
    return TableCells(
        data_name,
        has_header,
        tuple(names),
        tuple(map(_to_text_column, text_columns)),
        [line for line, _ in body],
        notes=notes,
    )


def create_table(data: Any, data_name: str = "the data") -> TableCells:
    """A data frame of pandas or polars, or a two-dimensional array, as a table."""
    if is_frame(data):
        names = [str(name).strip() for name in data.columns]
        if len(set(names)) < len(names):
            raise TaskError(f"{data_name}: two columns have the same name; rename one of them")
        columns = tuple(_to_column(data[name]) for name in data.columns)
        return TableCells(data_name, True, tuple(names), columns, range(len(data)), "row")
    array = np.asarray(data)
    columns = tuple(_to_column(array[:, index]) for index in range(array.shape[1]))
    names = tuple(_number_columns(array.shape[1]))
    return TableCells(data_name, False, names, columns, range(len(array)), "row")


def is_target_column(name: str) -> bool:
    """Whether a column has the name of a target."""
    return name.strip().lower() in TARGET_COLUMNS


def is_missing(text: str) -> bool:
    """Whether the text of a cell says that there is no value."""
    return text.strip().lower() in MISSING_WORDS


def is_number(text: str) -> bool:
    """Whether the text is a number, NaN and infinity included; `1_000` is none, as in pandas."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def is_date(text: str) -> bool:
    """Whether the text is a date with digits only, with or without a time of day."""
    return _DATE.fullmatch(text.strip()) is not None


def has_decimal_comma(text: str) -> bool:
    """Whether the text is a number such as `1,5`."""
    return _DECIMAL_COMMA.fullmatch(text.strip()) is not None


def _explain_number(text: str) -> str:
    """Why a number is not read, for a message; "" if the text is no number in any notation."""
    if _THOUSANDS.fullmatch(text):
        return ", it has a decimal comma or a comma between thousands"
    if has_decimal_comma(text):
        return ", it has a decimal comma"
    return ", it has an underscore" if is_number(text.replace("_", "")) else ""


def _has_decimal_commas(cells: Sequence[str]) -> bool:
    """Whether a column has numbers with decimal commas, and else only integers."""
    known = [cell for cell in cells if not is_missing(cell)]
    return any(map(has_decimal_comma, known)) and all(
        has_decimal_comma(cell) or _INTEGER.fullmatch(cell.strip()) for cell in known
    )


def _decode_text(data: bytes, data_name: str) -> str:
    """The text of a file in UTF-8. TaskError with the line and a remedy if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
        new_name = f"{Path(data_name).stem}-utf8{Path(data_name).suffix}"
        raise TaskError(
            f"{data_name}: line {line} is not UTF-8; save the file as UTF-8, for example "
            f"`iconv -f {encoding} -t utf-8 {data_name} > {new_name}`"
        ) from None


def _has_header(first_row: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether the first line has column names.

    It does if some cell is a word, the last one is the name of a target, or all of `columns` are
    there: names that the settings mention, or that a network was trained on.
    """
    # The last cell may be a class name, so it does not show a header unless it is the only one.
    return (
        not all(is_number(cell) or is_missing(cell) for cell in first_row[:-1] or first_row)
        or is_target_column(first_row[-1])
        or (bool(columns) and set(columns) <= {cell.strip() for cell in first_row})
    )


def _parse_json_lines(text: str, data_name: str) -> TableCells:
    """A JSON object per line; its keys are the columns."""
    lines, records = [], []
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            record = parse_json(content)
        except ValueError as error:
            raise TaskError(f"{data_name}: line {line} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise TaskError(f"{data_name}: line {line} must be an object, `{{…}}`")
        for name, value in record.items():
            if isinstance(value, list | dict):
                raise TaskError(
                    f"{data_name}: line {line}, column `{name}`: a cell must be a number, "
                    "a text, true, false or null"
                )
        lines.append(line)
        records.append(record)
    if not records:
        raise TaskError(f"{data_name}: there are no examples; the file is empty")
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = tuple(_to_column([record.get(name) for record in records]) for name in names)
    return TableCells(data_name, True, tuple(name.strip() for name in names), columns, lines)


def _read_parquet(path: Path) -> TableCells:
    parquet = import_optional("pyarrow.parquet", feature="a .parquet file", install="pyarrow")
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow raises many types on a broken file
        raise TaskError(f"{path.name} cannot be read: {error}") from None
    if not table.num_rows:
        raise TaskError(f"{path.name}: there are no examples; the file is empty")
    columns = tuple(_to_column(column.to_pylist()) for column in table.columns)
    names = tuple(str(name).strip() for name in table.column_names)
    return TableCells(path.name, True, names, columns, range(table.num_rows), "row")


def _to_column(values: Any) -> np.ndarray:
    """Values of any origin as numbers, if all of them are or are missing; else as texts."""
    if hasattr(values, "dtype"):  # an array, or a column of a frame
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array
    cells = [None if is_null(value) else value for value in values]
    if all(isinstance(cell, int) and abs(cell) < 2**63 for cell in cells):
        return np.array(cells, dtype=np.int64)
    if all(cell is None or isinstance(cell, bool | int | float | np.number) for cell in cells):
        return np.array([np.nan if cell is None else _to_float(cell) for cell in cells])
    return _to_text_column("" if cell is None else _format_cell(cell) for cell in cells)


def _to_text_column(cells: Iterable[str]) -> np.ndarray:
    texts = list(cells)
    column = np.empty(len(texts), dtype=object)
    column[:] = texts
    return column


def _format_cell(cell: Any) -> str:
    is_plain_number = isinstance(cell, bool | int | float | np.number | np.bool_)
    return _format_number(cell) if is_plain_number else str(cell)


def _to_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of more than 308 digits
        return np.inf if number > 0 else -np.inf


def _format_number(number: Any) -> str:
    """A number as text: `3` for 3 and 3.0, `1` for True, `0.1` in any precision, "" for NaN."""
    if isinstance(number, int | np.integer | np.bool_) and abs(int(number)) < 2**64:
        return str(int(number))
    value = _to_float(number)
    if np.isnan(value):
        return ""
    is_short_integer = value.is_integer() and abs(value) < MAX_SHORT_INTEGER
    return str(int(value)) if is_short_integer else str(number)


def _parse_number(text: str) -> float:
    return float(text) if is_number(text) else np.nan


def _number_columns(count: int) -> list[str]:
    return [str(column + 1) for column in range(count)]
