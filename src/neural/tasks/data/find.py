"""What the user wrote as `data` → the source that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.names import did_you_mean
from neural.tasks.data.source import Examples, Where
from neural.tasks.data.sources import registry
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network


MEMORY = "arrays in memory"
"""What settings say where the data came from Python."""


def read(where: Where, network: Network) -> Examples:
    """The examples, by the one source that knows this kind."""
    kinds = [registry.get(name) for name in registry.names()]
    fitting = [kind for kind in kinds if kind.fits(where)]
    if len(fitting) == 1:
        return fitting[0].read(where, network)
    what = where if isinstance(where, str | Path) else "the data"
    if fitting:
        raise TaskError(f"{what} could be read in two ways: {' or '.join(kind.looks for kind in fitting)}; keep one")
    listed = "\n".join(f"  {kind.looks}" for kind in kinds)
    raise TaskError(f"{what} is nothing that can be read; known are\n{listed}")


def locate(data: Any, folder: Path) -> Where:
    """A known name, or absolute paths of what exists, or arrays as they are. Paths are seen from `folder`.

    A bare name that is known is the data set; `./digits` is a folder.
    """
    if isinstance(data, Mapping) and data and all(isinstance(value, str | Path) for value in data.values()):
        return {str(name): _existing(value, folder) for name, value in data.items()}
    if data == MEMORY and isinstance(data, str):
        raise TaskError("the data was in memory, and went with the process; give the arrays again")
    if isinstance(data, str) and data in known():
        return data
    if isinstance(data, str | Path):
        return _existing(data, folder)
    if isinstance(data, Mapping | tuple):
        return data
    if isinstance(data, list):
        return tuple(data)
    raise TaskError(f"data must be a name, a path or arrays, got {type(data).__name__}")


def known() -> list[str]:
    """The data sets that have names."""
    return [name for kind in registry.names() for name in registry.get(kind).names]


def said(where: Where) -> str | dict[str, str]:
    """How settings write it down, so that it is found again from any folder, or known to be gone."""
    if isinstance(where, str | Path):
        return str(where)
    if isinstance(where, Mapping) and all(isinstance(value, Path) for value in where.values()):
        return {name: str(value) for name, value in where.items()}
    return MEMORY


def _existing(data: str | Path, folder: Path) -> Path:
    path = (folder / Path(data).expanduser()).absolute()
    try:
        if path.exists():
            return path
    except OSError:   # a name that no file can have
        pass
    help_ = did_you_mean(str(data), known()) or f"known by name: {', '.join(known())}"
    raise TaskError(f"there is no data `{data}`: no such file or folder in {folder.absolute()}; {help_}")
