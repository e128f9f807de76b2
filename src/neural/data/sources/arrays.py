"""Arrays in memory, passed from Python. The name of an array is its role: `x`, `y`, `mask`, …"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.data.array_roles import assign_roles
from neural.data.source import DataLocation, DataSource, Examples

if TYPE_CHECKING:
    from neural.language.network import Network


class Arrays(DataSource):
    """`(x, y)`, `(x, y, x_valid, y_valid)` or `{"x": …, "y": …}`: numpy arrays, tensors, lists."""

    description: ClassVar[str] = (
        "from Python: (x, y), (x, y, x_valid, y_valid), or a dict of arrays by name"
    )

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A tuple, or a mapping whose values are not paths."""
        if isinstance(location, Mapping):
            return not location or not all(isinstance(value, Path) for value in location.values())
        return isinstance(location, tuple)

    @classmethod
    def read(cls, location: Mapping[str, Any] | tuple[Any, ...], network: Network) -> Examples:
        """Convert all values to numpy arrays."""
        if isinstance(location, tuple):
            if len(location) not in (2, 4):
                raise TaskError(
                    f"the data has {len(location)} arrays: pass (x, y) or (x, y, x_valid, y_valid)"
                )
            location = dict(zip(("x", "y", "x_valid", "y_valid"), location, strict=False))
        arrays = {name: _to_array(name, value) for name, value in location.items()}
        train, valid, notes = assign_roles(arrays, "the data", network)
        return Examples(data_name="the data", train=train, valid=valid, notes=tuple(notes))


def _to_array(name: str, value: Any) -> np.ndarray:
    """A tensor (from any device, detached), array or list as a numpy array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value)
    except ValueError:  # lists of different lengths
        raise TaskError(
            f"the data: `{name}` is not rectangular; pad its rows to one length and add a mask"
        ) from None
