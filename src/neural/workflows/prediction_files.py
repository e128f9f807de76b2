"""Write predictions to a file: CSV, TSV, JSON lines or Parquet, by its suffix."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from neural.core.errors import TaskError, describe_os_error
from neural.core.files import open_atomic
from neural.core.optional_packages import import_optional
from neural.tasks.task import Prediction, Predictions, TabularPrediction


def save_predictions(predictions: Predictions, path: Path) -> int:
    """Write all predictions in the order of the input; returns the number of rows.

    The file is replaced when it is complete. TaskError for an unknown suffix, before anything is
    predicted that takes time, and for predictions that are not a table.
    """
    write = find_writer(path)
    content, count = write(predictions.items)
    try:
        with open_atomic(path) as file:
            file.write(content)
    except OSError as error:
        raise TaskError(f"{path} cannot be written: {describe_os_error(error)}") from None
    return count


Writer = Callable[[Iterable[Prediction]], tuple[bytes, int]]
"""Function of the predictions: the content of the file, and the number of rows."""


def find_writer(path: Path) -> Writer:
    """The writer for a file's suffix. TaskError if there is none, or its package is missing."""
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise TaskError(
            f"{path.name}: predictions are written as {', '.join(WRITERS)}; choose one of these "
            "suffixes"
        )
    if suffix == ".parquet":
        import_optional("pyarrow.parquet", feature="a .parquet file", install="pyarrow")
    return WRITERS[suffix]


def format_predictions(predictions: Predictions, *, as_json: bool = False) -> str:
    """The text that `-o -` prints: CSV, or JSON lines for documents and with `as_json`."""
    items = list(predictions.items)
    is_table = all(isinstance(item, TabularPrediction) for item in items)
    content, _ = to_csv(items) if is_table and not as_json else to_json_lines(items)
    return content.decode("utf-8")


def to_csv(items: Iterable[Prediction], delimiter: str = ",") -> tuple[bytes, int]:
    """Comma-separated values with a header, in UTF-8."""
    columns = _collect_columns(items)
    rows = list(zip(*columns.values(), strict=True))
    text = StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8"), len(rows)


def to_json_lines(items: Iterable[Prediction]) -> tuple[bytes, int]:
    """A JSON object per row or document, as `neural predict --json` prints it."""
    lines = []
    for item in items:
        lines += [json.dumps(record, ensure_ascii=False) + "\n" for record in item.to_records()]
    return "".join(lines).encode("utf-8"), len(lines)


def _to_tsv(items: Iterable[Prediction]) -> tuple[bytes, int]:
    return to_csv(items, "\t")


def _to_parquet(items: Iterable[Prediction]) -> tuple[bytes, int]:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(_collect_columns(items))
    buffer = BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue(), table.num_rows


def _collect_columns(items: Iterable[Prediction]) -> dict[str, list[Any]]:
    """Columns of all predictions, one below the other. TaskError if they are not tables."""
    joined: dict[str, list[Any]] = {}
    for item in items:
        if not isinstance(item, TabularPrediction):
            raise TaskError("predictions for documents are not a table: write them as .jsonl")
        for name, values in item.to_columns().items():
            joined.setdefault(name, []).extend(values)
    return joined


WRITERS: dict[str, Writer] = {
    ".csv": to_csv,
    ".tsv": _to_tsv,
    ".jsonl": to_json_lines,
    ".parquet": _to_parquet,
}
"""Writers by the suffix of the file."""
