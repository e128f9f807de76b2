"""Load what the `data` setting names, with the matching data source (neural/data/sources).

A data source reads one kind of data, such as CSV tables. A location is a dataset name, a path,
paths by array name, or arrays in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.errors import TaskError
from neural.core.files import expand_home, suggest_file
from neural.core.names import suggest_name
from neural.data.array_conversion import is_frame, is_torch_data, read_torch_data
from neural.data.source import DataLocation, DataSchema, Examples
from neural.data.sources import registry
from neural.data.table_cells import SPREADSHEET_SUFFIXES
from neural.data.table_columns import TableSettings

if TYPE_CHECKING:
    from neural.language.network import Network


ESCAPED_PATH = re.compile(r"[A-Za-z]:[^\\/]|\\[^\\]|.*[\t\n\r]", re.DOTALL)
"""What is left of `C:\\new\\table.csv` or `\\\\server\\share` in a string in which `\\` starts an escape."""
IN_MEMORY = "arrays in memory"
"""Value of the `data` setting in the saved settings of a run whose arrays came from Python."""


def load_data(
    location: DataLocation,
    network: Network,
    table: TableSettings | None = None,
    schema: DataSchema | None = None,
) -> Examples:
    """Read examples with the one source that matches the location.

    `table` has the settings of columns. `schema` has the names in the training data, if this is
    other data for the same network.
    """
    sources = [registry.get(name) for name in registry.names()]
    matching = [source for source in sources if source.matches(location)]
    if len(matching) == 1:
        source, settings = matching[0], table or TableSettings()
        if schema is None and settings == TableSettings():
            return source.read(location, network)
        return source.read_table(location, network, settings, schema)
    data_name = location if isinstance(location, str | Path) else "the data"
    if matching:
        raise TaskError(
            f"{data_name} matches several kinds of data: "
            f"{' or '.join(source.description for source in matching)}; keep one"
        )
    if isinstance(location, Path) and location.suffix.lower() in SPREADSHEET_SUFFIXES:
        raise TaskError(f"{data_name} is a spreadsheet; save it as CSV and name the .csv file")
    descriptions = "\n".join(f"  {source.description}" for source in sources)
    raise TaskError(f"{data_name} is not a known kind of data; known are\n{descriptions}")


def locate_data(data: Any, folder: Path) -> DataLocation:
    """Resolve the `data` setting: a dataset name, existing absolute paths, or arrays as given.

    Relative paths start at `folder`. A dataset name wins over a path: `./digits` is a folder.
    """
    if (
        isinstance(data, Mapping)
        and data
        and all(isinstance(value, str | Path) for value in data.values())
    ):
        return {str(name): _resolve_path(value, folder) for name, value in data.items()}
    if isinstance(data, str) and data == IN_MEMORY:
        raise TaskError(
            "the data was in memory and is gone with its process; pass the arrays again"
        )
    if isinstance(data, str) and data in list_datasets():
        return data
    if isinstance(data, str | Path):
        return _resolve_path(data, folder)
    if isinstance(data, Mapping | tuple):
        return data
    if isinstance(data, list):
        return tuple(data)
    if is_torch_data(data):
        return read_torch_data(data)
    if is_frame(data) or hasattr(data, "shape"):
        kind = "column with the labels" if is_frame(data) else "labels"
        raise TaskError(
            f"the data has inputs only: pass the {kind} too, `neural.fit(network, X, y)`"
        )
    raise TaskError(f"data must be a name, a path or arrays, got {type(data).__name__}")


def list_datasets() -> list[str]:
    """Names of all datasets that the `data` setting can name."""
    return [
        dataset_name
        for source_name in registry.names()
        for dataset_name in registry.get(source_name).dataset_names
    ]


def serialize_location(location: DataLocation) -> str | dict[str, str]:
    """Location as a value of the `data` setting; absolute, so that it works from any folder."""
    if isinstance(location, str | Path):
        return str(location)
    if isinstance(location, Mapping) and all(
        isinstance(value, Path) for value in location.values()
    ):
        return {name: str(value) for name, value in location.items()}
    return IN_MEMORY


def _resolve_path(data: str | Path, folder: Path) -> Path:
    """The absolute path, from `folder` if relative. Raises TaskError if it does not exist."""
    path = (folder / expand_home(data)).absolute()
    try:
        if path.exists():
            return path
    except OSError:  # not a valid file name
        pass
    text = str(data)
    if ESCAPED_PATH.match(text):
        text = repr(text)[1:-1]
        hint: str | None = "`\\` starts an escape in strings: write the path with `/`"
    else:
        hint = suggest_name(text, list_datasets()) or suggest_file(path)
    if hint is None and not path.suffix:  # a name with a suffix is meant to be a file
        hint = f"known by name: {', '.join(list_datasets())}"
    raise TaskError(
        f"there is no data `{text}`: no such file or folder in {folder.absolute()}"
        + (f"; {hint}" if hint else "")
    )
